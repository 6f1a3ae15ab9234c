"""Runs notebooks from top to bottom: `python -m tests.notebook_runs [NAME ...]` keeps them with what they give now."""

from __future__ import annotations

import logging
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbclient import NotebookClient

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parent.parent
_RANDOM_ID = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{12})\b")
"""A summary's, whole or as it is shown."""
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(path: Path, folder: Path) -> NotebookNode:
    """A notebook with the outputs of this run; `folder` is where it writes its files."""
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    known = os.environ.get("PYTHONPATH")
    paths = os.pathsep.join([str(ROOT), *([known] if known else [])])
    # By default it goes on without the outputs that a loaded machine brings more than four seconds late.
    patience = {"timeout": 240, "iopub_timeout": 240, "raise_on_iopub_timeout": True}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, **patience)
    client.execute(env={**os.environ, "PYTHONPATH": paths})
    for cell in code_cells(notebook):
        cell.outputs = _joined(cell.outputs)
        cell.metadata.pop("execution", None)  # when it ran
    notebook.metadata.language_info = {"name": "python"}  # the version is the machine's
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Its cells of code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def told(notebook: NotebookNode) -> list[list[str]]:
    """What each cell of code gives as text: what it prints, and what its values say of themselves; pictures by name."""
    cells = code_cells(notebook)
    return [[_RANDOM_ID.sub("id", _text_of(output)) for output in cell.outputs] for cell in cells]


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Without the chance by which a stream comes in one piece or in several."""
    found: list[NotebookNode] = []
    for output in outputs:
        if found and output.output_type == "stream" and found[-1].get("name") == output.name:
            found[-1] = nbformat.from_dict({**found[-1], "text": found[-1].text + output.text})
        else:
            found.append(output)
    return found


def _text_of(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return f"{output.name}: {output.text}"
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    data: dict[str, Any] = output.data
    pictures = sorted(kind for kind in data if kind.startswith("image/"))
    return "\n".join([*pictures, *(data[kind] for kind in ("text/plain", "text/html") if kind in data)])


def main(names: list[str]) -> None:
    """Run those whose names begin so, or all."""
    logging.disable(logging.INFO)
    for path in NOTEBOOKS:
        if not names or path.stem.startswith(tuple(names)):
            with tempfile.TemporaryDirectory() as folder:
                notebook = executed(path, Path(folder))
            nbformat.write(notebook, path)
            sys.stdout.write(f"{path.name}: {sum(map(len, told(notebook)))} outputs\n")


if __name__ == "__main__":
    main(sys.argv[1:])
