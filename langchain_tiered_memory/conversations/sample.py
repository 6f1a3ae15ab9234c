"""The conversation that ships with the package, so that the first command works on a bare machine."""

from __future__ import annotations

import functools
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from langchain_tiered_memory.conversations.reading import read_conversation

if TYPE_CHECKING:
    from langchain_tiered_memory.conversations.nouns import Conversation

SAMPLE_FILE = "seed-library.jsonl"


@functools.cache
def sample_conversation() -> Conversation:
    """Somebody builds a lending library for seeds with an assistant's help, over three weeks; with questions."""
    with as_file(files("langchain_tiered_memory") / "samples") as folder:
        return read_conversation(folder / SAMPLE_FILE)
