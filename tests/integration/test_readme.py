"""What the README shows runs as it stands, against a server that speaks OpenAI's, and satisfies a type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.openai_server import OpenAIServer

pytestmark = pytest.mark.slow

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("error:langchain_tiered_memory:DeprecationWarning")
def test_every_example_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared: dict[str, Any] = {"__name__": "readme"}
    opened: dict[int, Any] = {}
    by_hand: list[Any] = []
    with OpenAIServer() as server:
        monkeypatch.chdir(tmp_path)
        for name in ("README.md", "src/app.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("# a file of a project\n", encoding="utf-8")
        monkeypatch.setenv("OPENAI_API_KEY", "made-up")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for number, code in enumerate(BLOCKS):
            exec(compile(code, f"README.md, example {number}", "exec"), shared)  # noqa: S102 - our own README
            opened[id(shared["memory"])] = shared["memory"]
            if "builder.compile" in code:
                by_hand = shared["memory"].session("bob").messages()
        asked = [str(one.messages[-1]["content"]) for one in server.answered]
        for memory in opened.values():
            memory.close()
    assert [one for one in asked if "4711" in one]
    assert [one for one in asked if "my name" in one]
    assert (tmp_path / "memory.db").exists()
    assert [one.type for one in by_hand] == ["human", "ai"], "the graph by hand keeps its last answer"


def test_a_type_checker_accepts_every_example_of_the_readme(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    examples = tmp_path / "readme.py"
    examples.write_text("\n".join(BLOCKS), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", str(examples)], cwd=README.parent, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
