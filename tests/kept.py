"""Files that are kept beside the code, and hold what the code writes."""

from __future__ import annotations

from pathlib import Path


def keep(path: Path, text: str, rewrite: bool) -> None:
    """Fail if the kept file is another text; or put it right, so that the difference can be read and committed."""
    if rewrite:
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else None
    assert text == kept, f"{path.name}: pytest --rewrite writes what it comes to"
