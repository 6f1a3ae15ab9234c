"""The memory as a store of LangGraph: what its own stores do, on every database; and whose items are whose."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from langchain_tiered_memory import TieredStore
from langchain_tiered_memory.errors import InvalidInputError, ReadOnlyError, SettingsError
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import BrokenEmbeddings, HashingEmbeddings
from tests.memory_builders import NOW, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

both = pytest.mark.parametrize("call_style", CALL_STYLES)
DOCS = ("docs",)


class Clock:
    """Says what it is told."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(where: str | Path | None, clock: Clock) -> Iterator[TieredMemory]:
    with open_memory(where, embeddings=HashingEmbeddings(), clock=clock) as opened:
        yield opened


def keys(found: list[Any]) -> list[str]:
    return [one.key for one in found]


@both
def test_an_item_is_put_read_written_over_and_deleted(
    memory: TieredMemory, clock: Clock, call_style: CallStyle
) -> None:
    store = TieredStore(memory)
    value = {"title": "On \x00 and \ud83d", "nested": {"deep": [1, 2.5, None, True]}, "großes": "ß"}
    told(call_style, store.put, ("users", "Zoe"), "k/1\x00", value)
    item = told(call_style, store.get, ("users", "Zoe"), "k/1\x00")
    assert (item.value, item.key, item.namespace) == (value, "k/1\x00", ("users", "Zoe"))
    clock.now += 5
    told(call_style, store.put, ("users", "Zoe"), "k/1\x00", {"title": "anew"})
    again = told(call_style, store.get, ("users", "Zoe"), "k/1\x00")
    assert again.value == {"title": "anew"}
    assert again.created_at == item.created_at == item.updated_at < again.updated_at
    assert told(call_style, store.get, ("users", "zoe"), "k/1\x00") is None
    told(call_style, store.delete, ("users", "Zoe"), "k/1\x00")
    told(call_style, store.delete, ("users", "Zoe"), "never there")
    assert told(call_style, store.get, ("users", "Zoe"), "k/1\x00") is None


@both
def test_a_batch_reads_what_was_there_before_it_and_writes_the_last_word_on_each_item(
    memory: TieredMemory, call_style: CallStyle
) -> None:
    store = TieredStore(memory)
    store.put(DOCS, "old", {"n": 1})
    ops = [
        GetOp(DOCS, "old"),
        PutOp(DOCS, "old", {"n": 2}),
        PutOp(DOCS, "new", {"n": 3}),
        PutOp(DOCS, "new", {"n": 4}),
        SearchOp(DOCS),
        ListNamespacesOp(),
        PutOp(("other",), "gone", {"n": 5}),
        PutOp(("other",), "gone", None),
        GetOp(DOCS, "new"),
    ]
    results = told(call_style, store.batch, ops)
    assert results[0].value == {"n": 1}
    assert keys(results[4]) == ["old"]
    assert results[5] == [DOCS]
    assert results[1:4] + results[6:] == [None] * 6
    assert [store.get(DOCS, key).value for key in ("old", "new")] == [{"n": 2}, {"n": 4}]
    assert store.list_namespaces() == [DOCS]
    with pytest.raises(InvalidInputError, match="not JSON"):
        told(call_style, store.batch, [PutOp(DOCS, "a", {"n": 6}), PutOp(DOCS, "b", {"n": object()})])
    assert store.get(DOCS, "a") is None


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"type": "note"}, {"a", "b"}),
    ({"type": {"$ne": "note"}}, {"c", "d"}),
    ({"score": {"$gt": 2, "$lte": 4}}, {"b", "c"}),
    ({"score": {"$gte": 4}, "type": {"$eq": "task"}}, {"c"}),
    ({"score": {"$lt": 3}}, {"a"}),
    ({"by": {"name": "Ann"}}, {"a", "c"}),
    ({"by.name": "Ben"}, {"b"}),
    ({"tags": ["x", "y"]}, {"c"}),
    ({"missing": None}, {"a", "b", "c", "d"}),
    ({"score') OR 1=1 --": 1}, set()),
]


@pytest.mark.parametrize(("wanted", "meant"), FILTERS, ids=[str(wanted) for wanted, _ in FILTERS])
@both
def test_a_search_is_filtered_by_values(wanted: dict[str, Any], meant: set[str], call_style: CallStyle) -> None:
    with open_memory() as memory:
        store = TieredStore(memory)
        for key, value in {
            "a": {"type": "note", "score": 1, "by": {"name": "Ann"}},
            "b": {"type": "note", "score": 3.0, "by": {"name": "Ben"}},
            "c": {"type": "task", "score": 4, "by": {"name": "Ann"}, "tags": ["x", "y"]},
            "d": {"score": "many"},
        }.items():
            store.put(("all", "of", "them"), key, value)
        assert set(keys(told(call_style, store.search, ("all",), filter=wanted))) == meant
        assert set(keys(told(call_style, store.search, ("all",), filter=wanted, query="note"))) == meant
        with pytest.raises(InvalidInputError, match=r"\$like"):
            told(call_style, store.search, ("all",), filter={"type": {"$like": "n%"}})


@both
def test_pages_give_each_item_once_the_last_written_first(
    memory: TieredMemory, clock: Clock, call_style: CallStyle
) -> None:
    store = TieredStore(memory)
    for number in range(7):
        clock.now += 1
        store.put(DOCS, f"k{number}", {"n": number}, index=False)
    expected = [f"k{number}" for number in reversed(range(7))]
    for how in ({}, {"filter": {"n": {"$gte": 0}}}, {"query": "anything"}):
        pages = [told(call_style, store.search, DOCS, limit=3, offset=start, **how) for start in (0, 3, 6, 9)]
        assert [keys(page) for page in pages] == [expected[:3], expected[3:6], expected[6:], []]


@both
def test_a_namespace_has_those_below_it_and_no_others(memory: TieredMemory, call_style: CallStyle) -> None:
    store = TieredStore(memory)
    there = [
        ("a",),
        ("a", "b"),
        ("a", "b", "c"),
        ("ab",),
        ("A", "b"),
        ("a%", "b"),
        ("a_", "b"),
        ("a\n", "b"),
        ("z", "b", "c"),
    ]
    for namespace in there:
        store.put(namespace, "k", {"at": list(namespace)})
    assert {one.namespace for one in told(call_style, store.search, ("a",))} == set(there[:3])
    assert {one.namespace for one in told(call_style, store.search, ("a_",))} == {("a_", "b")}
    assert len(told(call_style, store.search, (), limit=99)) == len(there)

    def listed(**how: Any) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = told(call_style, store.list_namespaces, **how)
        return found

    assert listed() == sorted(there)
    assert listed(prefix=("a",)) == there[:3]
    assert listed(prefix=("*", "b"), suffix=("c",)) == [("a", "b", "c"), ("z", "b", "c")]
    assert listed(suffix=("b",), max_depth=1) == [(one[0],) for one in sorted(there) if one[-1] == "b"]
    assert listed(limit=2, offset=1) == sorted(there)[1:3]
    both_ends = (MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("b",)))
    assert store.batch([ListNamespacesOp(match_conditions=both_ends)]) == [[("a", "b")]]
    for label in ("", "a.b", "nul\x00"):
        with pytest.raises(InvalidNamespaceError):
            told(call_style, store.batch, [PutOp(("ok", label), "k", {})])


@both
def test_items_live_as_long_as_they_are_given_and_longer_where_they_are_read(
    memory: TieredMemory, clock: Clock, call_style: CallStyle
) -> None:
    store = TieredStore(memory, ttl={"default_ttl": 10, "refresh_on_read": True})
    store.put(DOCS, "read", {"n": 1})
    store.put(DOCS, "left", {"n": 2})
    store.put(DOCS, "lasts", {"n": 3}, ttl=None)
    clock.now += 8 * 60
    assert told(call_style, store.get, DOCS, "read") is not None
    assert told(call_style, store.get, DOCS, "left", refresh_ttl=False) is not None
    clock.now += 5 * 60
    assert told(call_style, store.get, DOCS, "left") is None
    assert set(keys(told(call_style, store.search, DOCS, refresh_ttl=False))) == {"read", "lasts"}
    assert told(call_style, store.sweep_ttl) == 1
    clock.now += 24 * 3600
    store.put(("other",), "k", {"n": 4})  # a write takes what has expired along
    assert told(call_style, store.sweep_ttl) == 0
    assert store.list_namespaces() == [DOCS, ("other",)]
    store.put(DOCS, "read", {"n": 5})
    assert store.get(DOCS, "read").created_at == store.get(DOCS, "read").updated_at


@both
def test_a_question_finds_items_by_the_texts_that_they_are_indexed_by(
    memory: TieredMemory, call_style: CallStyle
) -> None:
    store = TieredStore(memory, fields=("text", "notes[*].said"))
    store.put(DOCS, "tea", {"text": "green tea from Uji", "aside": "harbour crane"})
    store.put(DOCS, "crane", {"text": "the harbour crane", "notes": [{"said": "rusty bolts"}, {"said": "green paint"}]})
    store.put(DOCS, "own", {"aside": "green tea"}, index=["aside"])
    store.put(DOCS, "hidden", {"text": "green tea"}, index=False)
    found = told(call_style, store.search, DOCS, query="green tea", limit=10)
    assert keys(found)[0] == "own"
    assert keys(found)[-1] == "hidden"
    assert found[-1].score is None
    scores = [one.score for one in found[:-1]]
    assert scores == sorted(scores, reverse=True)
    assert keys(told(call_style, store.search, DOCS, query="rusty bolts", limit=1)) == ["crane"]
    assert keys(told(call_style, store.search, DOCS, query="harbour crane", limit=1)) == ["crane"]
    store.put(DOCS, "tea", {"text": "nothing of the kind"})
    store.delete(DOCS, "own")
    assert "own" not in keys(told(call_style, store.search, DOCS, query="green tea"))


def test_scores_and_order_are_those_of_langgraphs_own_store() -> None:
    embeddings = HashingEmbeddings()
    theirs = InMemoryStore(index={"dims": 64, "embed": embeddings, "fields": ["$"]})
    with open_memory(embeddings=embeddings) as memory:
        ours = TieredStore(memory)
        for number, said in enumerate(("tea from Uji", "a rusty crane", "tea and cranes", "bolts", "", "tea tea tea")):
            for store in (ours, theirs):
                store.put(DOCS, f"k{number}", {"said": said})
        for query in ("tea", "crane of Uji", "bolts"):
            mine, other = (
                [(one.key, pytest.approx(one.score, abs=1e-5)) for one in store.search(DOCS, query=query, limit=4)]
                for store in (ours, theirs)
            )
            assert mine == other


@pytest.mark.slow
def test_with_minilm_it_finds_what_langgraphs_own_store_finds(where: str | Path | None) -> None:
    embeddings = resolve_embeddings("auto")
    if embeddings is None:
        pytest.skip("the files of MiniLM are not here: tiered-memory setup")
    theirs = InMemoryStore(index={"dims": 384, "embed": embeddings, "fields": ["text"]})
    said = (
        "She drinks her coffee black and from a dark roast.",
        "The ferry leaves quay 7 in the morning.",
        "Her dog is afraid of thunder.",
        "The invoice was paid on Monday.",
    )
    with open_memory(where, embeddings=embeddings) as memory:
        ours = TieredStore(memory, fields=("text",))
        for number, text in enumerate(said):
            for store in (ours, theirs):
                store.put(DOCS, f"k{number}", {"text": text})
        asked = {
            "Which beverage does she like?": "k0",
            "When does the boat depart?": "k1",
            "Has the bill been settled?": "k3",
        }
        for query, meant in asked.items():
            mine, other = (
                [(one.key, pytest.approx(one.score, abs=1e-5)) for one in store.search(DOCS, query=query)]
                for store in (ours, theirs)
            )
            assert mine == other
            assert mine[0][0] == meant


@both
def test_a_score_is_that_of_what_an_item_says_now(memory: TieredMemory, call_style: CallStyle) -> None:
    store = TieredStore(memory, fields=("text",))
    store.put(DOCS, "changing", {"text": "a rusty harbour crane"})
    store.put(DOCS, "other", {"text": "green tea from Uji"})

    def scores(query: str) -> dict[str, float | None]:
        return {one.key: one.score for one in told(call_style, store.search, DOCS, query=query)}

    before = scores("harbour crane")
    store.put(DOCS, "changing", {"text": "green tea of the harbour"})
    after = scores("harbour crane")
    assert (after["changing"] or 0) < (before["changing"] or 0)
    assert after["other"] == before["other"]
    assert (scores("green tea of the harbour")["changing"] or 0) == pytest.approx(1.0, abs=1e-5)
    store.put(DOCS, "changing", {"text": "a rusty harbour crane"}, index=False)
    assert scores("harbour crane")["changing"] is None


@both
def test_pages_of_an_answer_give_each_item_once_the_best_first(memory: TieredMemory, call_style: CallStyle) -> None:
    store = TieredStore(memory)
    for number in range(9):
        store.put(DOCS, f"k{number}", {"text": "crane " * number + "tea", "even": number % 2 == 0})
    whole = told(call_style, store.search, DOCS, query="crane", limit=9)
    assert [one.score for one in whole] == sorted((one.score for one in whole), reverse=True)
    pages = [told(call_style, store.search, DOCS, query="crane", limit=4, offset=start) for start in (0, 4, 8, 12)]
    assert [keys(page) for page in pages] == [keys(whole)[start : start + 4] for start in (0, 4, 8, 12)]
    even = told(call_style, store.search, DOCS, query="crane", filter={"even": True}, limit=9)
    assert keys(even) == [one.key for one in whole if one.value["even"]]


@both
@pytest.mark.parametrize("query", ["", " ", "?!\u00a7$%&/()='\"*:;", "tea " * 3000, "NEAR(tea) OR -x", "\x00 \ud83d"])
def test_any_question_is_answered(memory: TieredMemory, query: str, call_style: CallStyle) -> None:
    store = TieredStore(memory)
    store.put(DOCS, "tea", {"text": "green tea from Uji"})
    assert keys(told(call_style, store.search, DOCS, query=query)) == ["tea"]


def test_without_an_embedder_a_question_is_answered_by_words() -> None:
    with open_memory() as memory:
        store = TieredStore(memory)
        store.put(DOCS, "tea", {"text": "green tea from Uji"})
        store.put(DOCS, "crane", {"text": "the harbour cranes", "more": ["bolts"]})
        found = store.search(DOCS, query="which crane has bolts?")
        assert keys(found) == ["crane", "tea"]
        assert [one.score is None for one in found] == [False, True]


def test_items_that_no_embedder_read_or_another_are_read_when_they_are_looked_for(tmp_path: Path) -> None:
    path, heard = tmp_path / "memory.db", []
    with open_memory(path, embeddings=BrokenEmbeddings()) as memory:
        memory.subscribe(heard.append)
        store = TieredStore(memory)
        store.put(DOCS, "tea", {"text": "green tea"})
        assert keys(store.search(DOCS, query="tea")) == ["tea"]
    assert {one.name for one in heard} == {"vectors_unavailable"}
    for dimensions in (64, 32):
        with open_memory(path, embeddings=HashingEmbeddings(dimensions)) as memory:
            (found,) = TieredStore(memory).search(DOCS, query="tea")
            assert found.score > 0
            memory.rebuild_index()
            assert TieredStore(memory).search(DOCS, query="tea")[0].score == found.score
            assert memory.verify().problems == ()


@both
def test_each_user_has_items_of_their_own_and_shares_what_is_said_to_be_shared(
    memory: TieredMemory, call_style: CallStyle
) -> None:
    zoe, bob, nobody = (TieredStore(memory, user=user, shared=[("team",)]) for user in ("zoe", "bob", None))
    for store, secret in ((zoe, "zoe's"), (bob, "bob's"), (nobody, "nobody's")):
        told(call_style, store.put, ("memories",), "k", {"secret": secret})
    zoe.put(("memories", "zoe alone"), "k", {"secret": "zoe's"})
    zoe.put(("team", "rules"), "k", {"says": "lunch at noon"})
    for store, secret in ((zoe, "zoe's"), (bob, "bob's"), (nobody, "nobody's")):
        assert told(call_style, store.get, ("memories",), "k").value == {"secret": secret}
        found = told(call_style, store.search, (), query="secret", limit=99)
        assert {one.value["secret"] for one in found if "secret" in one.value} == {secret}
        assert told(call_style, store.get, ("team", "rules"), "k").value == {"says": "lunch at noon"}
    assert told(call_style, bob.list_namespaces) == [("memories",), ("team", "rules")]
    bob.delete(("memories",), "k")
    assert zoe.get(("memories",), "k") is not None
    receipt = told(call_style, memory.forget, user="zoe")
    assert receipt.items == 2
    assert zoe.search((), limit=99) == zoe.search(("team",))
    assert keys(nobody.search(("memories",))) == ["k"]


def test_a_memory_that_only_reads_gives_items_and_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with open_memory(path) as memory:
        TieredStore(memory).put(DOCS, "k", {"n": 1}, ttl=10)
    with open_memory(path, read_only=True) as memory:
        store = TieredStore(memory)
        assert keys(store.search(DOCS, query="n")) == keys(store.search(DOCS)) == ["k"]
        assert store.get(DOCS, "k").value == {"n": 1}
        with pytest.raises(ReadOnlyError):
            store.put(DOCS, "k", {"n": 2})


def test_what_cannot_be_used_is_refused() -> None:
    with open_memory() as memory:
        with pytest.raises(SettingsError, match="TieredMemory"):
            TieredStore("memory.db")  # type: ignore[arg-type]
        with pytest.raises(SettingsError, match="shared"):
            TieredStore(memory, shared=[()])
        with pytest.raises(InvalidInputError, match="limit"):
            TieredStore(memory).search(DOCS, limit=-1)


WRONG: tuple[Any, ...] = ("word", b"x", True, 1.5, math.nan, math.inf, -1, object(), {"a": 1}, [5], ["\0"], [None])
MEANT: dict[str, tuple[Any, ...]] = {
    "namespace": (), "key": ("word",), "value": ({"a": 1},), "index": (["\0"],), "ttl": (1.5,), "query": ("word",),
    "filter": ({"a": 1},), "limit": (), "offset": (), "max_depth": (), "refresh_ttl": (True,),
}  # fmt: skip
"""Of `WRONG`, what is right there."""
OPS = (
    *(GetOp(DOCS, "k"), SearchOp(DOCS), PutOp(DOCS, "k", {"n": 1})),
    ListNamespacesOp(match_conditions=(MatchCondition("prefix", DOCS),)),
)


@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_what_no_call_takes_is_refused_in_words_and_nothing_is_written(op: Any) -> None:
    """One string is no namespace of its letters, and `True`, NaN and infinity are no numbers."""
    with open_memory() as memory:
        store = TieredStore(memory)
        for field in (name for name in op._fields if name != "match_conditions"):
            name = field.removesuffix("_prefix")
            for value in WRONG:
                if repr(value) in map(repr, MEANT[name]):
                    continue
                with pytest.raises((InvalidInputError, InvalidNamespaceError), match=r"must be|namespace"):
                    store.batch([op._replace(**{field: value})])
        assert store.list_namespaces() == []


def test_a_namespace_or_a_list_of_fields_is_never_one_string_and_a_call_never_something_else(
    memory: TieredMemory,
) -> None:
    store = TieredStore(memory)
    for call in (
        lambda: store.put("users", "k", {"n": 1}),  # type: ignore[arg-type]
        lambda: store.get("users", "k"),  # type: ignore[arg-type]
        lambda: store.search("users"),
        lambda: store.list_namespaces(suffix="users"),  # type: ignore[arg-type]
        lambda: store.put(DOCS, "k", {"n": 1}, index="title"),  # type: ignore[arg-type]
        lambda: store.batch(GetOp(DOCS, "k")),  # type: ignore[arg-type]
        lambda: store.batch([None]),  # type: ignore[list-item]
    ):
        with pytest.raises(
            (InvalidInputError, InvalidNamespaceError), match=r"tuple of labels|a list|operation of a store"
        ):
            call()
    assert store.list_namespaces() == []


def test_many_calls_at_once_lose_nothing(memory: TieredMemory) -> None:
    store = TieredStore(memory)

    async def put_all() -> None:
        await asyncio.gather(*(store.aput(DOCS, f"k{number % 20}", {"n": number}) for number in range(60)))

    asyncio.run(put_all())
    assert len(store.search(DOCS, limit=99)) == 20
