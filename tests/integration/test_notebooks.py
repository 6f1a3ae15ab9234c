"""Notebooks run from top to bottom, and are kept with what they print."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    kept = [bool(cell.get("outputs")) for cell in notebook.cells if cell.cell_type == "code"]
    client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    run = [bool(cell.get("outputs")) for cell in notebook.cells if cell.cell_type == "code"]
    assert run == kept, "a cell prints something else than what is kept with the notebook"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_outputs_and_without_an_error(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.output_type == "display_data" for output in outputs), "there is no plot"
    assert not [output for output in outputs if output.output_type == "error"]
    assert {cell.execution_count for cell in notebook.cells if cell.cell_type == "code"} >= {1}
