"""What text search must do on every database."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import PassageDraft
from tests.store_builders import NOW, append, claim, incoming, plan, session_with, summarised, written

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef


def found(store: SqlStore, ref: SessionRef, *terms: str, **options: object) -> list[int]:
    hits = store.text_index.find([ref], dict.fromkeys(terms, 1.0), limit=1000, **options)  # type: ignore[arg-type]
    assert len({hit.id for hit in hits}) == len(hits)
    assert {hit.session_key for hit in hits} <= {ref.key}
    return sorted(hit.seq for hit in hits)


def test_a_search_finds_exactly_the_passages_that_share_a_term(store: SqlStore) -> None:
    rng = random.Random(1)
    words = [f"w{n}" for n in range(30)]
    texts = [" ".join(rng.choices(words, k=4)) for _ in range(120)]
    ref = append(store, "s", *(incoming(text) for text in texts)).ref
    append(store, "other", *(incoming(text) for text in texts))
    for question in (["w1"], ["w2", "w3"], ["w4", "nowhere"], ["nowhere"], words):
        expected = [seq for seq, text in enumerate(texts, 1) if set(question) & set(text.split())]
        assert found(store, ref, *question) == expected
    assert found(store, ref) == []


def test_terms_are_matched_whole_and_in_any_script(store: SqlStore) -> None:
    terms = [
        "user_id", "userid", "über", "uber", "日本", "日", "3ˑ5", "c++", "a.b", "a", "it's", "x\\y", "naïve", "ñ" * 64,
        "\N{GRINNING FACE}", "i\u0307", "n\u0303", "and", "or", "not", "near", "*", "(", "^", ":", "-", "!", "&", "|",
        "<->", "scope", "terms:a", "%", "null", ";",
    ]  # fmt: skip
    ref = append(store, "s", *(incoming("x", terms=term) for term in terms)).ref
    for seq, term in enumerate(terms, 1):
        assert found(store, ref, term) == [seq]
    assert found(store, ref, *terms) == list(range(1, len(terms) + 1))


def test_no_term_reaches_beyond_its_session_or_level(store: SqlStore) -> None:
    ref, other = session_with(store, 3), session_with(store, 3, "other")
    summary = summarised(store, ref, 1, 1, 2, text="common ground")
    assert found(store, ref, "common") == [1, 2, 3]
    assert found(store, other, "common") == [1, 2, 3]
    assert found(store, ref, "common", level=1) == [summary.last_seq]
    assert found(store, other, "common", level=1) == []
    assert found(store, ref, "1") == found(store, ref, "0") == found(store, ref, "1l0") == []
    mine = store.text_index.find([ref], {"common": 1.0}, limit=9)
    assert {hit.session_key for hit in mine} == {ref.key}
    assert store.text_index.by_id(other, [hit.id for hit in mine]) == []
    assert len(store.text_index.by_id(None, [hit.id for hit in mine])) == 3


def test_filters_narrow_a_search(store: SqlStore) -> None:
    odd = "tr\0ack"
    ref = append(
        store,
        "s",
        incoming("word", track=odd, kind="code", at=10.0),
        incoming("word", track="b", at=20.0),
        incoming("word", track=odd, kind="k'", at=30.0),
    ).ref
    for filters, expected in (
        (SearchFilters(tracks=(odd,)), [1, 3]),
        (SearchFilters(kinds=("code", "k'")), [1, 3]),
        (SearchFilters(since=20.0), [2, 3]),
        (SearchFilters(until=20.0), [1, 2]),
        (SearchFilters(since=20.0, until=20.0, tracks=("b",)), [2]),
        (SearchFilters(tracks=()), []),
    ):
        assert found(store, ref, "word", filters=filters) == expected
        every = [hit.id for hit in store.text_index.find([ref], {"word": 1.0}, limit=9)]
        assert sorted(hit.seq for hit in store.text_index.by_id(ref, every, filters=filters)) == expected


def test_the_most_promising_candidates_come_first(store: SqlStore) -> None:
    ref = append(
        store, "s", *(incoming(f"common filler{n}") for n in range(50)), incoming("rare common"), incoming("rare other")
    ).ref
    best = store.text_index.find([ref], {"rare": 5.0, "common": 0.1}, limit=2)
    assert [hit.seq for hit in best] == [51, 52]


def test_statistics_count_each_term_up_to_the_ceiling(store: SqlStore) -> None:
    ref = append(store, "s", *(incoming("common word" if n else "common word rare thing") for n in range(20))).ref
    append(store, "other", *(incoming("common") for _ in range(30)))
    figures = store.text_index.statistics([ref], ["common", "rare", "nowhere", "common"], ceiling=10)
    assert figures.document_frequency == {"common": 10, "rare": 1, "nowhere": 0}
    assert (figures.passages, figures.average_terms, figures.ceiling) == (20, 42 / 20, 10)


def test_statistics_of_summaries_are_those_of_their_level(store: SqlStore) -> None:
    ref = session_with(store, 4)
    summarised(store, ref, 1, 1, 2, text="one two three")
    summarised(store, ref, 1, 3, 4, text="one")
    figures = store.text_index.statistics([ref], ["one", "three"], level=1)
    assert (figures.passages, figures.average_terms) == (2, 2.0)
    assert figures.document_frequency == {"one": 2, "three": 1}
    assert store.text_index.statistics([ref], ["one"], level=2).passages == 0


def test_an_edit_and_a_remake_change_what_is_found(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claimed = claim(store, ref, plan(1, 1, 2))
    assert claimed is not None
    said = written("poor old", degraded=True, retry_at=NOW)
    store.tree.commit(ref, claimed, said, owner="w", now=NOW)
    append(store, "s", incoming("changed", "m1"))
    assert (found(store, ref, "word1"), found(store, ref, "changed")) == ([], [1])
    assert found(store, ref, "changed", filters=SearchFilters(tracks=("main",))) == [1]
    due = store.tree.due(ref, now=NOW, remake_stale=False)
    assert due is not None
    store.tree.lease(due, owner="w", now=NOW, lease_seconds=9)
    store.tree.commit(ref, due, written("rich"), owner="w", now=NOW)
    assert (found(store, ref, "poor", level=1), found(store, ref, "rich", level=1)) == ([], [2])


def test_a_long_message_has_its_passages_in_order(store: SqlStore) -> None:
    item = incoming("aa bb cc", "m")
    parts = tuple(
        PassageDraft(part=n, start=n * 3, stop=n * 3 + 2, terms=term) for n, term in enumerate(["a", "b", "c"])
    )
    ref = append(store, "s", type(item)(draft=item.draft, passages=parts)).ref
    every = [one.passage for one in store.text_index.said(ref, [1, 1, 7])]
    assert [(one.part, one.start, one.stop, one.terms) for one in every] == [
        (0, 0, 2, "a"),
        (1, 3, 5, "b"),
        (2, 6, 8, "c"),
    ]
    (found,) = store.text_index.find([ref], {"b": 1.0}, limit=5)
    (hit,) = store.text_index.by_id(ref, [found.id])
    assert (hit.part, hit.level, hit.summary_id, hit.seq) == (1, 0, None, 1)
    assert store.transcript.totals(ref)["terms"] == 3
