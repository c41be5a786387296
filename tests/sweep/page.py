"""The parts of a report, and the values of an analysis, for the tests of all of them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest


class Page(HTMLParser):
    """The parts of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open, self.tags, self.runs = [], [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.add(tag)
        if "id" in found:
            self.ids.append(found["id"])
        if "data-run" in found:
            self.runs.append((tag, found["data-run"]))
        self.links += [value for name, value in found.items() if name in ("src", "href", "data", "action")]
        if tag not in ("meta", "br", "hr", "img", "link", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def names_runs(text, known):
    """Assert that rows and marks of a report name runs that there are; how many of each do."""
    runs = Page(text).runs
    assert {run for _, run in runs} <= set(known)
    rows = re.findall(r"<tr[^>]*>", text)
    assert sum(tag == "tr" for tag, _ in runs) <= len(rows)
    return {tag: sum(each == tag for each, _ in runs) for tag in ("tr", "g", "svg")}


def stands_alone(text, sections):
    """Assert that a report is well formed, has its sections, and needs nothing from anywhere."""
    page = Page(text)
    assert page.open == []
    assert not page.tags & {"link", "img", "iframe"}
    assert ("script" in page.tags) == ('<div class="brl-run">' in text), "of the run that one explores, and no other"
    assert not re.search(r"https?:|@import|url\((?!#)", text)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.ids) == len(set(page.ids))
    assert {name for name, _ in sections} <= set(page.ids)
    for _, title in sections:
        assert f">{title}</h2>" in text


def alike(found, expected):
    """Assert that two analyses are the same, but for the last digits of sums of the same numbers in another order.

    Numbers that are rounded first are no measure: a half in the digit after the last may go either way.
    """
    found, expected = dict(_flat(found)), dict(_flat(expected))
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), key
    return len(found)


def _flat(value, path=()):
    """Each plain value in a nest of them, with the way to it."""
    if isinstance(value, dict | list | tuple):
        yield (*path, "size"), len(value)
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(each, (*path, key))
    else:
        yield path, value
