"""What every vector index must do, wherever Chroma keeps its rows."""

from __future__ import annotations

import math
import shutil
import socket
from typing import TYPE_CHECKING

import chromadb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.runnables.config import run_in_executor

from langchain_tiered_memory.errors import ClosedError, IndexUnavailableError, SettingsError
from langchain_tiered_memory.recall.chroma.index import ChromaIndex
from langchain_tiered_memory.recall.vector_queue import VectorRow
from tests.embedders import BrokenEmbeddings, FixedEmbeddings, HashingEmbeddings, ScatteringEmbeddings
from tests.servers import chroma_server, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

EMBEDDER = HashingEmbeddings()


def row(number: int, text: str | None = None, *, session: int = 1, **metadata: str | float) -> VectorRow:
    known = {"session": session, "level": 0, "seq": number, "track": "main", "at": float(number), "kind": ""}
    return VectorRow(id=number, text=text or f"passage number{number}", metadata={**known, **metadata})


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("server")) as server:
        yield server.url


@pytest.fixture(params=["directory", "memory", "client", pytest.param("server", marks=pytest.mark.service)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., ChromaIndex]]:
    """Opens an index; called twice with the same arguments it opens the same rows, except in memory."""
    place = {"directory": lambda: tmp_path / "chroma", "memory": lambda: None, "client": chromadb.EphemeralClient}
    where = request.getfixturevalue("server_url") if request.param == "server" else place[request.param]()
    indexes: list[ChromaIndex] = []

    def make(embeddings: Embeddings = EMBEDDER, namespace: str = "") -> ChromaIndex:
        # The server and the client outlive the test, so the namespace tells its rows from another test's.
        index = ChromaIndex(embeddings, where, namespace=f"{tmp_path}{namespace}")
        indexes.append(index)
        return index

    yield make
    for index in indexes:
        index.close()


@pytest.fixture
def index(opened: Callable[..., ChromaIndex]) -> ChromaIndex:
    return opened()


def test_a_passage_that_was_added_is_found_with_its_similarity(index: ChromaIndex) -> None:
    index.add([row(1, "the ship sails at noon"), row(2, "bread and butter")])
    found = index.search("the ship sails at noon", session_keys=[1], limit=1)
    assert [number for number, _ in found] == [1]
    assert math.isclose(found[0][1], 1.0, abs_tol=1e-4)


def test_an_empty_index_finds_and_holds_nothing(index: ChromaIndex) -> None:
    assert index.search("anything", session_keys=[1], limit=5) == []
    assert index.ids() == set()
    assert index.remove([1, 2]) == 0


def test_adding_and_removing_nothing_does_nothing(index: ChromaIndex) -> None:
    index.add([])
    assert index.remove([]) == 0
    assert index.ids() == set()


def test_a_limit_larger_than_the_index_gives_what_there_is(index: ChromaIndex) -> None:
    index.add([row(number) for number in range(3)])
    assert len(index.search("passage", session_keys=[1], limit=500)) == 3
    assert index.search("passage", session_keys=[1], limit=0) == []


def test_results_come_best_first(index: ChromaIndex) -> None:
    index.add([row(1, "red"), row(2, "red green"), row(3, "red green blue")])
    similarities = [similarity for _, similarity in index.search("red green blue", session_keys=[1], limit=3)]
    assert similarities == sorted(similarities, reverse=True)


def test_a_session_never_sees_the_rows_of_another(index: ChromaIndex) -> None:
    index.add([row(1, "shared words", session=1), row(2, "shared words", session=2), row(3, "other", session=3)])
    assert [number for number, _ in index.search("shared words", session_keys=[2], limit=9)] == [2]
    assert {number for number, _ in index.search("shared words", session_keys=[2, 3], limit=9)} == {2, 3}
    assert index.search("shared words", session_keys=[], limit=9) == []


def test_a_level_is_searched_in_as_many_sessions_as_are_named(index: ChromaIndex) -> None:
    index.add([row(1, session=3), row(2, session=499), row(3, session=20_000), row(4, session=3, level=1)])
    assert {number for number, _ in index.search("passage", session_keys=range(500), limit=9)} == {1, 2}
    assert [number for number, _ in index.search("passage", session_keys=range(500), limit=9, level=1)] == [4]


def test_an_id_that_exists_is_replaced_and_of_one_twice_the_last_counts(index: ChromaIndex) -> None:
    index.add([row(1, "old words")])
    index.add([row(1, "never seen"), row(1, "new sentence", session=2)])
    assert index.ids() == {1}
    assert index.search("new sentence", session_keys=[1], limit=1) == []
    found = index.search("new sentence", session_keys=[2], limit=1)
    assert math.isclose(found[0][1], 1.0, abs_tol=1e-4)


def test_removing_counts_what_was_there_and_ignores_the_rest(index: ChromaIndex) -> None:
    index.add([row(number) for number in range(5)])
    assert index.remove([1, 2, 2, 77]) == 2
    assert index.ids() == {0, 3, 4}
    assert {number for number, _ in index.search("passage", session_keys=[1], limit=9)} == {0, 3, 4}


@pytest.mark.slow
@pytest.mark.sweep(1)
def test_more_rows_than_chroma_takes_at_once_are_added_listed_and_removed(index: ChromaIndex) -> None:
    index.add([row(number) for number in range(6200)])
    assert index.ids() == set(range(6200))
    assert index.remove(range(6200)) == 6200
    assert index.ids() == set()


def test_clearing_removes_the_rows_of_every_embedder_and_of_this_memory_only(
    opened: Callable[..., ChromaIndex],
) -> None:
    mine, theirs = opened(), opened(namespace=" of somebody else")
    mine.add([row(1)])
    theirs.add([row(2)])
    mine.clear()
    assert mine.ids() == set()
    assert theirs.ids() == {2}
    mine.add([row(3)])
    assert [number for number, _ in mine.search("passage", session_keys=[1], limit=9)] == [3]


def test_namespaces_never_share_rows(opened: Callable[..., ChromaIndex]) -> None:
    mine, theirs = opened(), opened(namespace="/../other ✓")
    mine.add([row(1)])
    assert theirs.ids() == set()
    assert theirs.search("passage", session_keys=None, limit=9) == []


def test_two_memories_in_one_process_never_share_rows_even_under_one_name() -> None:
    one, two = (ChromaIndex(EMBEDDER, namespace=":memory:") for _ in range(2))
    one.add([row(1)])
    assert two.ids() == set()
    one.close()
    two.add([row(2)])
    assert two.ids() == {2}
    two.close()


def test_an_index_in_memory_leaves_no_collection_behind_when_closed() -> None:
    client = chromadb.EphemeralClient()
    before = {collection.name for collection in client.list_collections()}
    index = ChromaIndex(EMBEDDER, namespace="gone")
    index.add([row(1)])
    index.close()
    assert {collection.name for collection in client.list_collections()} == before


def test_odd_text_is_stored(index: ChromaIndex) -> None:
    index.add([row(1, "text \udfff \x00", track="lone \ud800, nul \x00, 名前 / .. '"), row(2)])
    assert {number for number, _ in index.search("text", session_keys=[1], limit=9)} == {1, 2}


def test_rows_are_there_after_reopening(opened: Callable[..., ChromaIndex], request: pytest.FixtureRequest) -> None:
    if "memory" in request.node.name:
        pytest.skip("an index in memory ends with its owner")
    first = opened()
    first.add([row(1)])
    first.close()
    assert opened().ids() == {1}


def test_another_embedder_starts_empty_beside_the_old_collection(
    opened: Callable[..., ChromaIndex], request: pytest.FixtureRequest
) -> None:
    if "memory" in request.node.name:
        pytest.skip("an index in memory is never opened by another embedder")
    old, new = opened(), opened(HashingEmbeddings(32))
    old.add([row(1), row(2)])
    assert new.ids() == set()
    new.add([row(1)])
    assert old.fingerprint != new.fingerprint
    assert new.remove([1, 2]) == 1
    assert old.ids() == set()
    new.clear()
    assert new.ids() == set()


def test_a_closed_index_says_so(index: ChromaIndex) -> None:
    index.add([row(1)])
    index.close()
    index.close()
    for use in (index.ids, index.clear, index.compact, lambda: index.add([row(2)]), lambda: index.remove([1])):
        with pytest.raises(ClosedError, match="closed"):
            use()


def test_a_failing_embedder_is_an_unavailable_index(opened: Callable[..., ChromaIndex]) -> None:
    index = opened(BrokenEmbeddings())
    with pytest.raises(IndexUnavailableError, match="no vectors"):
        index.add([row(1)])
    with pytest.raises(IndexUnavailableError, match="no vectors"):
        index.search("anything", session_keys=[1], limit=1)


@pytest.mark.parametrize("vector", [[1.0, 2.0], [float("nan"), 0.0, 1.0], [float("inf"), 0.0, 1.0], []])
def test_vectors_of_another_dimension_or_no_numbers_are_refused(
    opened: Callable[..., ChromaIndex], vector: list[float]
) -> None:
    index = opened(FixedEmbeddings([0.5, 0.5, 0.5]))
    index.add([row(1)])
    liar = opened(FixedEmbeddings(vector))
    with pytest.raises(IndexUnavailableError, match="embedder returned vectors"):
        liar.add([row(2)])
    assert index.ids() == ({1} if index._owned else liar.ids())


async def test_from_a_coroutine_an_index_works_in_an_executor(index: ChromaIndex) -> None:
    await run_in_executor(None, index.add, [row(1)])
    assert await run_in_executor(None, index.ids) == {1}


@pytest.mark.parametrize("where", ["http://user:pass@127.0.0.1:1", "http://127.0.0.1:99999", "http://x/path", 7])
def test_a_place_that_is_none_is_refused(where: object) -> None:
    with pytest.raises(SettingsError, match=r"Chroma|chroma") as refused:
        ChromaIndex(EMBEDDER, where, namespace="n")  # type: ignore[arg-type]
    assert "pass" not in str(refused.value).replace("passed", "")


def test_nobody_at_the_address_is_an_unavailable_index_and_its_message_says_what_to_do() -> None:
    index = ChromaIndex(EMBEDDER, f"http://127.0.0.1:{free_port()}", namespace="n", timeout_seconds=2)
    with pytest.raises(IndexUnavailableError, match="start it again"):
        index.search("anything", session_keys=[1], limit=1)


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = ChromaIndex(EMBEDDER, f"http://127.0.0.1:{silent.getsockname()[1]}", namespace="n", timeout_seconds=0.3)
        with pytest.raises(IndexUnavailableError, match="server"):
            index.ids()


@pytest.mark.slow
@pytest.mark.service
def test_a_server_gone_and_back_is_used_again(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "rows") as server:
        index = ChromaIndex(EMBEDDER, server.url, namespace="n")
        index.add([row(1)])
        server.end()
        with pytest.raises(IndexUnavailableError):
            index.ids()
        server.start()
        assert index.ids() == {1}
        server.end()
        server.start(tmp_path / "emptied")
        assert index.search("passage", session_keys=[1], limit=1) == []
        assert index.count() == 0
        server.end()
        server.start(tmp_path / "rows")
        assert index.count() == 1
        server.end()
        server.start(tmp_path / "emptied again")
        index.add([row(2)])
        assert index.ids() == {2}
        index.close()


@pytest.mark.slow
@pytest.mark.service
def test_a_server_that_stops_answering_costs_one_wait_and_is_back_at_once(tmp_path: Path) -> None:
    with chroma_server(tmp_path) as server:
        index = ChromaIndex(EMBEDDER, server.url, namespace="n", timeout_seconds=0.7)
        index.add([row(1)])
        server.freeze()
        for attempt in range(4):
            with pytest.raises(IndexUnavailableError, match="no answer within" if attempt == 0 else "stays silent"):
                index.search("passage", session_keys=[1], limit=1)
        server.thaw()
        assert [number for number, _ in index.search("passage", session_keys=[1], limit=1)] == [1]
        index.close()


@pytest.mark.parametrize("disposable", [True, False])
@pytest.mark.parametrize("is_file", [True, False])
def test_what_cannot_be_read_is_deleted_where_it_is_ours_alone_and_moved_aside_elsewhere(
    tmp_path: Path, *, disposable: bool, is_file: bool
) -> None:
    place = tmp_path / "chroma"
    if is_file:
        place.write_bytes(b"no directory")
    else:
        place.mkdir()
        (place / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
        (place / "folder").mkdir()
    index = ChromaIndex(EMBEDDER, place, namespace="n", disposable=disposable)
    for _ in range(3):
        with pytest.raises(IndexUnavailableError):
            index.add([row(1)])
    said = index.discard()
    assert said is not None
    index.add([row(1)])
    assert index.ids() == {1}
    aside = sorted(path.name for path in tmp_path.iterdir() if path != place)
    assert len(aside) == (0 if disposable else 1)
    assert all(name.startswith("chroma.damaged-") for name in aside)
    index.close()


def test_a_directory_that_is_made_is_for_nobody_else(tmp_path: Path) -> None:
    index = ChromaIndex(EMBEDDER, tmp_path / "above" / "chroma", namespace="n")
    index.add([row(1)])
    assert (tmp_path / "above" / "chroma").stat().st_mode & 0o777 == 0o700
    index.close()


def test_a_directory_deleted_beneath_is_an_empty_index_that_takes_rows_again(tmp_path: Path) -> None:
    index = ChromaIndex(EMBEDDER, tmp_path / "chroma", namespace="n")
    index.add([row(1)])
    shutil.rmtree(tmp_path / "chroma")
    assert index.ids() == set()
    index.add([row(2)])
    assert index.ids() == {2}
    assert [number for number, _ in index.search("passage", session_keys=[1], limit=9)] == [2]
    index.close()


def test_a_directory_that_is_no_directory_or_is_damaged_is_an_unavailable_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"not a database" * 1000)
    for place in (tmp_path / "file", tmp_path / "chroma"):
        index = ChromaIndex(EMBEDDER, place, namespace="n")
        with pytest.raises(IndexUnavailableError, match="rebuild_index"):
            index.ids()
        with pytest.raises(IndexUnavailableError):
            index.add([row(1)])


def test_a_persistent_client_that_is_passed_shares_its_directory(tmp_path: Path) -> None:
    client = chromadb.PersistentClient(str(tmp_path))
    index = ChromaIndex(EMBEDDER, client, namespace="n")
    index.add([row(1)])
    assert [collection.count() for collection in client.list_collections()] == [1]
    assert ChromaIndex(EMBEDDER, tmp_path, namespace="n").ids() == {1}
    index.close()
    assert client.heartbeat() > 0


def test_a_session_of_repeated_answers_is_found_whole(tmp_path: Path) -> None:
    index = ChromaIndex(ScatteringEmbeddings(), tmp_path, namespace="n")
    index.add(
        [row(number, "thanks" if number % 2 else f"words{number}", session=number // 40) for number in range(800)]
    )
    for session in (0, 7, 19):
        found = dict(index.search("thanks", session_keys=[session], limit=100))
        assert set(found) == set(range(session * 40, session * 40 + 40))
        assert all(math.isclose(found[number], 1.0, abs_tol=1e-4) for number in found if number % 2)
    index.close()


def test_a_session_of_more_rows_than_are_compared_one_by_one_is_searched_too(tmp_path: Path) -> None:
    index = ChromaIndex(ScatteringEmbeddings(), tmp_path, namespace="n")
    index.add([row(number, session=1 + number % 2) for number in range(2400)])
    found = index.search("passage number400", session_keys=[1], limit=5)
    assert found[0][0] == 400
    assert len(found) == 5
    assert all(number % 2 == 0 for number, _ in found)
    assert len(index.search("passage number400", session_keys=[1], limit=5000)) == 1200
    index.close()


def bytes_with(folder: Path, marker: bytes) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and marker in path.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("documents", [False, True])
def test_after_compacting_no_file_holds_what_was_removed(tmp_path: Path, *, documents: bool) -> None:
    index = ChromaIndex(EMBEDDER, tmp_path, namespace="n", documents=documents)
    kept = [row(number, f"KEPTTEXT{number} stays", track="kept-track") for number in range(300)]
    gone = [row(1000 + number, f"GONETEXT{number} leaves", track="gone-track") for number in range(1200)]
    index.add([*kept, *gone])
    assert index.remove([passage.id for passage in gone]) == 1200
    assert index.compact() == ()
    assert bytes_with(tmp_path, b"GONETEXT") == []
    assert bytes_with(tmp_path, b"gone-track") == []
    assert bytes_with(tmp_path, b"KEPTTEXT") == (["chroma.sqlite3"] if documents else [])
    assert index.ids() == {passage.id for passage in kept}
    found = dict(index.search("KEPTTEXT7 stays", session_keys=[1], limit=2000))
    assert set(found) == {passage.id for passage in kept}
    assert math.isclose(found[7], 1.0, abs_tol=1e-4)
    index.close()
    reopened = ChromaIndex(EMBEDDER, tmp_path, namespace="n")
    assert dict(reopened.search("KEPTTEXT7 stays", session_keys=[1], limit=2000)).keys() == found.keys()
    reopened.close()


def test_clearing_leaves_no_vector_folder_behind(tmp_path: Path) -> None:
    index = ChromaIndex(EMBEDDER, tmp_path, namespace="n")
    index.add([row(number) for number in range(1100)])
    index.search("passage", session_keys=[1], limit=1)
    assert list(tmp_path.glob("*/header.bin"))
    index.clear()
    assert not list(tmp_path.glob("*/header.bin"))
    index.close()


def test_vector_files_hold_nothing_past_their_last_element(tmp_path: Path) -> None:
    index = ChromaIndex(HashingEmbeddings(16), tmp_path, namespace="n")
    index.add([row(number) for number in range(400)])
    index.search("passage", session_keys=[1], limit=1)
    levels = list(tmp_path.glob("*/data_level0.bin"))
    assert levels
    for path in levels:
        assert path.read_bytes().strip(b"\0") == b""
    index.close()
    reopened = ChromaIndex(HashingEmbeddings(16), tmp_path, namespace="n")
    assert len(reopened.search("passage", session_keys=[1], limit=1000)) == 400
    reopened.close()


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "remove", "reopen"]), st.integers(0, 12), st.integers(1, 3)), max_size=12
    )
)
def test_whatever_is_added_and_removed_the_index_holds_just_what_remains(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("steps")
    index = ChromaIndex(EMBEDDER, folder, namespace="n")
    model: dict[int, int] = {}
    for step, number, session in steps:
        if step == "add":
            index.add([row(number, session=session)])
            model[number] = session
        elif step == "remove":
            assert index.remove([number]) == (1 if number in model else 0)
            model.pop(number, None)
        else:
            index.close()
            index = ChromaIndex(EMBEDDER, folder, namespace="n")
    assert index.ids() == set(model)
    for session in (1, 2, 3):
        found = {number for number, _ in index.search("passage", session_keys=[session], limit=50)}
        assert found == {number for number, owner in model.items() if owner == session}
    index.close()


def test_vectors_are_given_back_by_the_ids_of_their_passages(index: ChromaIndex) -> None:
    assert index.vectors([1]) == {}
    index.add([row(1, "the ship sails at noon"), row(2, "bread and butter")])
    given = index.vectors([2, 1, 2, 77])
    assert {number: [round(float(one), 4) for one in vector] for number, vector in given.items()} == {
        number: [round(one, 4) for one in EMBEDDER.embed_query(text)]
        for number, text in ((1, "the ship sails at noon"), (2, "bread and butter"))
    }
