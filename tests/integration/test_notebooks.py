"""Notebooks run from top to bottom, and are kept with what they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytestmark = pytest.mark.slow

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

from tests.notebook_runs import NOTEBOOKS, code_cells, executed, told  # noqa: E402 - needs what was looked for above

if TYPE_CHECKING:
    from pathlib import Path

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@each_notebook
def test_a_notebook_gives_what_is_kept_with_it(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("langchain")
    kept = nbformat.read(path, as_version=4)
    assert told(executed(path, tmp_path)) == told(kept), f"run `python -m tests.notebook_runs {path.stem}` and read it"


@each_notebook
def test_a_notebook_is_kept_whole_with_something_to_look_at_and_without_a_fault(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    cells = code_cells(notebook)
    outputs = [output for cell in cells for output in cell.outputs]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any({"image/png", "text/html"} & set(output.get("data", {})) for output in outputs)
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert path.stat().st_size < 800_000


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 7
