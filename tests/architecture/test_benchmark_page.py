"""docs/benchmarks.md is what the records say, and the figures of other papers are those of the records."""

from __future__ import annotations

import argparse
import importlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import page

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
STALE = " **Older than the code.**"


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((page.RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_the_page_is_made_from_the_records() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written.replace(STALE, "") == page.page("code of no record").replace(STALE, "")


def test_a_table_that_was_measured_on_other_code_says_so() -> None:
    codes = {str(json.loads(path.read_text(encoding="utf-8"))["code"]) for path in page.RESULTS.glob("*.json")}
    sections = sum(page.read(entry.name) is not None for entry in page.ENTRIES)
    assert page.page("code of no record").count(STALE) == sections
    for code in codes:
        assert page.page(code).count(STALE) < sections


def test_a_comment_or_a_docstring_is_no_code_and_a_text_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "ROOT", tmp_path)
    module = tmp_path / "langchain_tiered_memory" / "a.py"
    module.parent.mkdir()

    def digest_of(source: str) -> str:
        module.write_text(source, encoding="utf-8")
        return page.code_digest()

    first = digest_of('"""Old words."""\n\nLIMIT = 3\n"""Its unit."""\n')
    assert digest_of('"""New words."""\n\nLIMIT = 3  # a reason\n"""Another unit."""\n') == first
    assert digest_of('"""New words."""\n\nLIMIT = 4\n') != first
    assert digest_of('"""New words."""\n\nLIMIT = "3"\n') != first


class ParsedError(Exception):
    """The arguments were taken."""


@pytest.mark.parametrize("entry", [one for one in page.ENTRIES if not one.prints_text], ids=lambda entry: entry.name)
def test_each_command_of_the_page_takes_its_arguments(entry: page.Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = argparse.ArgumentParser.parse_args

    def parsed(*given: Any) -> None:
        parse(*given)
        raise ParsedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    with pytest.raises(ParsedError):
        importlib.import_module(entry.module).main([*entry.arguments, "--json", "found.json"])


def test_every_record_has_its_section_and_every_section_a_name_of_its_own() -> None:
    names = [entry.name for entry in page.ENTRIES]
    assert len(names) == len(set(names))
    assert {path.stem for path in page.RESULTS.iterdir()} - {"page"} <= set(names)


def test_a_record_names_the_command_that_the_page_would_run() -> None:
    for entry in page.ENTRIES:
        if (page.RESULTS / f"{entry.name}.json").exists():
            assert recorded(entry.name)["command"] == entry.command


def readme_rows() -> Iterator[tuple[str, str, str]]:
    table = README.partition("| memory | facts stated |")[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        name, stated, read = (cell.strip() for cell in line.strip("|").split("|"))
        yield name, stated, read


def test_the_readmes_table_is_that_of_the_record() -> None:
    stated, costs = recorded("fact_depth")["reports"][0]["grids"]
    facts = {row[0]: row[1] for row in stated["rows"]}
    reads = {row[0]: row[3] for row in costs["rows"]}
    names = {
        "this memory, no model": "this memory, no model",
        "this memory, with the model": "this memory, rewords",
        "a rule of ten lines: rare sentences and the newest messages": "rare sentences, a rule of ten lines, no model",
        "`SummarizationMiddleware`": "SummarizationMiddleware, rewords",
        "langmem": "langmem summarize_messages, rewords",
        "deepagents' summarisation": "deepagents' summarisation, rewords",
        "`trim_messages`": "trim_messages, no model",
        "`ConversationSummaryBufferMemory`": "ConversationSummaryBufferMemory, rewords",
    }
    rows = list(readme_rows())
    assert [name for name, _, _ in rows] == sorted(names, key=lambda name: -float(facts[names[name]]))
    for name, said, read in rows:
        assert said == f"{facts[names[name]]} %"
        assert int(read.replace(",", "")) == round(float(str(reads[names[name]]).replace(",", "")))
    assert f"`{recorded('fact_depth')['command']}`" in README


def test_the_readmes_sample_is_that_of_the_record() -> None:
    shown = re.search(r"^```text\n(tokens sent in .+?)^```$", README, re.MULTILINE | re.DOTALL)
    assert shown is not None
    output = recorded("replay")["output"]
    for line in shown[1].splitlines():
        assert line in output
