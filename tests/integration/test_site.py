"""The documents as a site: built in strict mode, whole, and nothing in it is loaded from another host."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

import langchain_tiered_memory
from langchain_tiered_memory import types
from langchain_tiered_memory.cli.app import _COMMANDS
from langchain_tiered_memory.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow
pytest.importorskip("mkdocs", reason="the documents are not built here: pip install -e '.[docs]'")
pytest.importorskip("mkdocstrings")

ROOT = Path(__file__).parents[2]
BUILT = "TIERED_MEMORY_SITE"
"""Names the folder of a site that was built just now, as `.ci/run` does."""
LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if BUILT in os.environ:
        return Path(os.environ[BUILT])
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    return folder


def text_of(page: Path) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def fields_of(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from fields_of(inner)


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    loaded = {address for page in pages for address in LOADED.findall(page.read_text(encoding="utf-8"))}
    assert [one for one in sorted(loaded) if one.startswith(("http:", "https:", "//"))] == []
    styles = "".join(page.read_text(encoding="utf-8") for page in site.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:https?:)?//[^)]+", styles) == []


def test_every_setting_is_in_the_reference_with_its_unit_default_and_bounds(site: Path) -> None:
    said = text_of(site / "settings.html")
    assert [name for name in fields_of(Settings) if name not in said] == []
    page = (site / "settings.html").read_text(encoding="utf-8")
    row = page.partition("<code>talk_recall_share</code>")[2].partition("</tr>")[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert [re.sub(r"<[^>]+>", "", one) for one in cells[:3]] == ["share of 1", "0.25", "at least 0, at most 1"]


def test_every_command_and_every_public_name_is_in_the_reference(site: Path) -> None:
    commands = text_of(site / "command_line.html")
    assert [name for name in _COMMANDS if f"tiered-memory {name} " not in commands] == []
    pages = " ".join(text_of(page) for page in (site / "api").glob("*.html")) + text_of(site / "settings.html")
    twins = {"acheckpoint_run", "amodel_input"}
    missing = [name for name in langchain_tiered_memory.__all__ if not re.search(rf"\b{name}\b", pages)]
    assert set(missing) - twins == {"__version__"}


def test_every_field_of_a_value_is_in_the_reference(site: Path) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    listed = [one for one in map(vars(types).get, types.__all__) if dataclasses.is_dataclass(one)]
    named = {f"{one.__module__}.{one.__name__}": one for one in listed if isinstance(one, type)}
    shown = {place: one for place, one in named.items() if f'id="{place}"' in pages}
    assert {"Context", "Summary", "Fact"} <= {one.__name__ for one in shown.values()}
    fields = [f"{place}.{field.name}" for place, one in shown.items() for field in dataclasses.fields(one)]
    assert [field for field in fields if f'id="{field}"' not in pages] == []


def test_papers_and_examples_outside_of_the_folder_have_their_pages(site: Path) -> None:
    for path in (ROOT / "examples").glob("*.py"):
        assert "def main() -> None:" in text_of(site / "examples" / f"{path.stem}.html") or path.stem == "fastapi_app"
    assert "Nothing is lost." in text_of(site / "index.html")
    assert "What is promised" in text_of(site / "project" / "security.html")
