"""Another implementation of Simple Binary Encoding (the package `sbe`), given the shipped schema.

It wants two things that the schema leaves implicit, and takes them from the schema alone: the length of each block,
and types that have names, with their null values, instead of primitive types at fields.
"""

from __future__ import annotations

import io
from importlib.resources import files
from xml.etree import ElementTree as ET

import sbe

SIZES = {"uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "int32": 4, "int64": 8}


def shipped() -> ET.Element:
    """The schema that comes with the package."""
    return ET.fromstring((files("barrierlab.impl.join") / "merge_map.xml").read_text(encoding="utf-8"))


def size_of(schema: ET.Element, field: ET.Element) -> int:
    """The bytes of a field."""
    kind = field.get("type", "")
    enum = schema.find(f"types/enum[@name='{kind}']")
    return SIZES[kind if enum is None else enum.get("encodingType", "")]


def extended(schema: ET.Element, version: int) -> ET.Element:
    """A later version of the schema: one field more in each block and in each entry of a group."""
    schema.set("version", str(version))
    for message in schema.iter("message"):
        groups = message.findall("group")
        at = list(message).index(groups[0]) if groups else len(message)
        message.insert(at, ET.Element("field", {"name": "later", "id": "90", "type": "uint32"}))
        for group in groups:
            group.append(ET.Element("field", {"name": "later", "id": "91", "type": "uint16"}))
    return schema


def understood(schema: ET.Element) -> sbe.Schema:
    """The schema as the other implementation reads it."""
    types = schema.find("types")
    assert types is not None
    blocks = [*schema.iter("message"), *schema.iter("group")]
    for block in blocks:
        fields = block.findall("field")
        block.set("blockLength", str(sum(size_of(schema, field) for field in fields)))
    for block in blocks:
        for field in block.findall("field"):
            kind = field.get("type", "")
            if kind not in SIZES:
                continue
            null = field.get("nullValue")
            name = kind.upper() if null is None else f"{field.get('name')}OrNull"
            if types.find(f"type[@name='{name}']") is None:
                about = {} if null is None else {"presence": "optional", "nullValue": null}
                types.append(ET.Element("type", {"name": name, "primitiveType": kind, **about}))
            field.set("type", name)
    text = ET.tostring(schema)
    return sbe.Schema.parse(io.BytesIO(text))
