"""What README and documents show runs as it stands, against a server that speaks OpenAI's."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.models.embeddings import find_minilm
from langchain_tiered_memory.models.token_counters import encoding_file
from tests.answering import answered, with_encodings
from tests.openai_server import OpenAIServer
from tests.papers import GUIDES, README, blocks_of, outputs_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

each_guide = pytest.mark.parametrize("paper", GUIDES, ids=lambda path: path.stem)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model's server, a folder with a project, and a function that runs a paper's examples there."""

    def run(paper: Path) -> tuple[dict[str, Any], list[str]]:
        shared: dict[str, Any] = {"__name__": f"paper_{paper.stem}"}
        opened: dict[int, TieredMemory] = {}
        for number, code in enumerate(blocks_of(paper)):
            compiled = compile(code, f"{paper.name}, example {number}", "exec", dont_inherit=True)
            exec(compiled, shared)  # noqa: S102 - our own papers
            opened.update({id(one): one for one in shared.values() if isinstance(one, TieredMemory)})
        shared["stored"] = paper == README and shared["memory"].session("bob").messages()
        for memory in opened.values():
            memory.close()
        return shared, [str(one.messages[-1]["content"]) for one in server.answered]

    monkeypatch.chdir(tmp_path)
    for name in ("README.md", "src/app.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# a file of a project\n", encoding="utf-8")
    said = [{"role": "user", "content": "The quay needs oak."}, {"role": "assistant", "content": "Noted."}]
    (tmp_path / "conversations.json").write_text(json.dumps([{"id": "quay", "messages": said}]), encoding="utf-8")
    (tmp_path / "new-key.txt").write_text("another key of the vault's", encoding="utf-8")
    with OpenAIServer(script=answered) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "made-up")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("MEMORY_KEY", "a key of sixteen bytes or more")
        yield run


def comments_of(paper: Path) -> list[str]:
    """What the papers say that a line prints."""
    return re.findall(r"^ *print\(.*\)  # ([A-Z0-9].+)$", "\n".join(blocks_of(paper)), re.MULTILINE)


_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_FIGURE = re.compile(r"\d[\d,]*")


def not_printed(paper: Path, printed: str) -> list[str]:
    """What a paper says that its blocks print, and they did not: but for times, and for figures that files are
    missing for, which a paper's are made with.
    """
    differs = _TIME if encoding_file("o200k_base") is not None and find_minilm() is not None else _FIGURE
    lines = {differs.sub("#", line) for line in printed.splitlines()}
    return [line for line in outputs_of(paper) if differs.sub("#", line) not in lines]


@pytest.mark.filterwarnings("error:langchain_tiered_memory:DeprecationWarning")
@each_guide
def test_every_example_of_a_guide_runs_and_prints_what_its_comments_say(
    asked: Any, paper: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, needed in (("langmem", "langmem"), ("deepagents", "deepagents"), ("encryption", "sqlcipher3")):
        if paper.stem == name:
            pytest.importorskip(needed)
    if "summary_buffer" in paper.stem:
        with_encodings(monkeypatch)
    asked(paper)
    printed = capsys.readouterr().out
    assert "I do not know." not in printed, "what was said before is not in the request"
    assert [said for said in comments_of(paper) if said not in printed] == []
    assert not_printed(paper, printed) == []


@pytest.mark.filterwarnings("error:langchain_tiered_memory:DeprecationWarning")
def test_the_readme_runs_prints_what_it_says_and_keeps_the_answers(
    asked: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shared, questions = asked(README)
    printed = capsys.readouterr().out
    assert len(comments_of(README)) == 3
    assert [said for said in comments_of(README) if said not in printed] == []
    assert len(outputs_of(README)) > 5
    assert not_printed(README, printed) == []
    assert {"What is my order number?", "What is my name?"} <= set(questions)
    assert [one.type for one in shared["stored"]] == ["human", "ai", "human", "ai"], (
        "graph and chain keep their answers"
    )
