"""README and the documents, and the blocks of Python in them that are run and type checked."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ELSEWHERE = ROOT / "docs" / "extending.md"
"""Its blocks stand alone: `test_extending_examples.py` runs each by itself."""


def blocks_of(paper: Path, mark: str = "python") -> list[str]:
    """What stands in its blocks marked so."""
    return re.findall(rf"^```{mark}\n(.*?)^```$", paper.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def outputs_of(paper: Path) -> list[str]:
    """The lines of what it says that a block of Python prints: the block marked `text` right behind it."""
    text = paper.read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(?:(?!```).*\n)*```\n+```text\n((?:(?!```).*\n)*)", text, re.MULTILINE)
    return [line for block in shown for line in block.splitlines()]


GUIDES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path != ELSEWHERE and blocks_of(path))
PAPERS = (README, ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
"""All with blocks of anything."""
