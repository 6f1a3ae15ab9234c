"""Processes that write and condense one session at once lose nothing, and make no summary twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, entries_of, open_memory, quick_settings, summaries_of
from tests.properties.test_cover import cover_faults
from tests.writers import choices, doubled, start, write_and_condense

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TURNS = 15
WORDS, VECTORS = False, True


def test_two_processes_on_one_session_lose_nothing_and_make_nothing_twice(
    shared_where: str | Path, tmp_path: Path
) -> None:
    chroma = str(tmp_path / "chroma")
    with open_memory(shared_where, chroma=chroma, **choices(vectors=True, background=False)) as memory:
        # Made before the others come, so that they meet over messages and not over an empty database.
        memory.session("s").add_messages(conversation(1))
        memory.flush()
        children = [
            start(write_and_condense, str(shared_where), VECTORS, chroma, name, TURNS) for name in ("one", "other")
        ]
        for _, pipe in children:
            assert pipe.recv() == "ready"
        for _, pipe in children:
            pipe.send("go")
        written = [pipe.recv() for _, pipe in children]
        for child, _ in children:
            child.join()
        session = memory.session("s")
        memory.flush()
        assert memory.verify().problems == ()
        there = [message.id for message in session.messages()]
        assert len(there) == len(set(there)) == 2 + 2 * 2 * TURNS
        for ids in written:
            assert [one for one in there if one in set(ids)] == ids, "each writer's messages are in its order"
        assert [entry.seq for entry in entries_of(session)] == list(range(1, len(there) + 1))
        assert doubled(session) == []
        assert cover_faults(session) == []
        assert any(summary.level > 1 for summary in summaries_of(session))


def test_two_processes_may_open_a_new_database_at_once(shared_where: str | Path) -> None:
    children = [start(write_and_condense, str(shared_where), WORDS, None, name, 2) for name in ("one", "other")]
    for _, pipe in children:
        assert pipe.recv() == "ready"
        pipe.send("go")
    written = {one for _, pipe in children for one in pipe.recv()}
    for child, _ in children:
        child.join()
    with open_memory(shared_where) as memory:
        assert {message.id for message in memory.session("s").messages()} == written
        assert memory.verify().problems == ()


def test_a_reader_sees_the_text_and_the_vectors_that_another_process_wrote(
    shared_where: str | Path, tmp_path: Path
) -> None:
    chroma = str(tmp_path / "chroma")
    with open_memory(shared_where, chroma=chroma, **choices(vectors=True, background=False)) as reader:
        session = reader.session("s")
        session.add_messages(conversation(1))
        assert len(session.search("crane order team", levels=[0])) == 2
        child, pipe = start(write_and_condense, str(shared_where), VECTORS, chroma, "writer", 8)
        assert pipe.recv() == "ready"
        pipe.send("go")
        written = pipe.recv()
        child.join()
        assert {message.id for message in session.messages()} >= set(written)
        found = {hit.id for hit in session.search("customs order team bolts", levels=[0])}
        assert found & set(written)
        index = reader.core.runtime.open_index()
        assert index is not None
        near = [one for level in range(9) for one in index.search("customs", session_keys=[1], limit=1000, level=level)]
        assert {passage for passage, _ in near} == index.ids()
        assert reader.verify().problems == ()


def test_a_memory_with_another_embedder_beside_it_still_writes_and_searches_by_words(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where, embeddings=HashingEmbeddings(32)) as one:
        one.session("s").add_messages(conversation(3))
        one.flush()
        with open_memory(where, embeddings=HashingEmbeddings(48), settings=quick_settings()) as other:
            session = other.session("s")
            session.add_messages(conversation(2, start=3))
            assert session.search("crane order", levels=[0])
            assert {problem.kind for problem in other.verify().problems} == {"vectors_unavailable"}
        one.flush()
        assert one.verify().problems == ()
