"""A memory with vectors that is made once."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a memory with embedded Chroma, a dozen turns, everything condensed and embedded."""
    folder = tmp_path_factory.mktemp("embedded")
    with open_memory(folder / "memory.db", embeddings=HashingEmbeddings()) as made:
        made.session("s").add_messages(conversation(12))
        made.session("other").add_messages(conversation(3))
        made.flush()
    return folder


@pytest.fixture
def memory(embedded: Path, tmp_path: Path) -> Iterator[TieredMemory]:
    """A copy of it, open."""
    shutil.copytree(embedded, tmp_path, dirs_exist_ok=True)
    with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as opened:
        yield opened
