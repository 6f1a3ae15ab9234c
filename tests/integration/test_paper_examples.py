"""What README and guides show runs as it stands, against a server that speaks OpenAI's, and is typed right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_tiered_memory import TieredMemory
from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAPERS = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("across_threads", "files", "integrations", "settings")),
]


def blocks_of(paper: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", paper.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model's server, a folder with a project, and a function that runs a paper's examples there."""

    def run(paper: Path) -> tuple[dict[str, Any], list[str]]:
        shared: dict[str, Any] = {"__name__": paper.stem}
        opened: dict[int, TieredMemory] = {}
        for number, code in enumerate(blocks_of(paper)):
            exec(compile(code, f"{paper.name}, example {number}", "exec"), shared)  # noqa: S102 - our own papers
            opened.update({id(one): one for one in shared.values() if isinstance(one, TieredMemory)})
        shared["stored"] = opened and shared["memory"].session("bob").messages()
        for memory in opened.values():
            memory.close()
        return shared, [str(one.messages[-1]["content"]) for one in server.answered]

    monkeypatch.chdir(tmp_path)
    for name in ("README.md", "src/app.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# a file of a project\n", encoding="utf-8")
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "made-up")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield run


@pytest.mark.filterwarnings("error:langchain_tiered_memory:DeprecationWarning")
@pytest.mark.parametrize("paper", PAPERS[1:], ids=lambda path: path.stem)
def test_every_example_of_a_guide_runs(asked: Any, paper: Path) -> None:
    assert blocks_of(paper)
    asked(paper)


@pytest.mark.filterwarnings("error:langchain_tiered_memory:DeprecationWarning")
def test_the_readme_runs_prints_what_its_comments_say_and_keeps_the_answers(
    asked: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shared, questions = asked(PAPERS[0])
    printed = capsys.readouterr().out
    for comment in re.findall(r"^ *print\(.*\)  # (.+)$", "\n".join(blocks_of(PAPERS[0])), re.MULTILINE):
        assert comment in printed or comment == "messages for any chat model"
    assert {"What is my order number?", "What is my name?"} <= set(questions)
    assert [one.type for one in shared["stored"]][:2] == ["human", "ai"], "the graph by hand keeps its answer"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.stem)
def test_a_type_checker_accepts_every_example_of_a_paper(tmp_path: Path, paper: Path) -> None:
    pytest.importorskip("mypy")
    examples = tmp_path / "examples.py"
    examples.write_text("\n".join(blocks_of(paper)), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", str(examples)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
