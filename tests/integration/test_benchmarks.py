"""Each benchmark runs at a tiny size, prints its tables and writes JSON of the promised shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langmem", reason="the benchmarks' peers are an extra")
pytest.importorskip("langchain_classic", reason="the benchmarks' peers are an extra")

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import condensing, cover_facts, embedding, prefix, recall, turn_cost
from benchmarks.conversations import PlantedFact, conversation, shown_text, stated
from langchain_tiered_memory.embeddings import find_minilm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Run = Callable[..., tuple[dict[str, Any], str]]

COMMON = {"benchmark", "about", "settings", "grids", "figures", "targets", "remarks", "machine"}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a benchmark's command and gives its JSON and what it printed."""

    def call(main: Callable[[Sequence[str]], object], *given: str) -> tuple[dict[str, Any], str]:
        main([*given, "--json", str(tmp_path / "found.json")])
        found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
        assert set(found) == COMMON
        assert all(set(target) == {"aim", "measured", "met"} for target in found["targets"])
        return found, capsys.readouterr().out

    return call


@pytest.mark.slow
def test_turn_cost_gives_times_ratios_and_memory_for_each_size(run: Run) -> None:
    found, printed = run(turn_cost.main, "--sizes", "40,80", "--turns", "2")
    assert set(found["figures"]) == {"40", "80"}
    large = found["figures"]["80"]
    assert large["turn_ms"]["count"] == 2
    assert large["turn_ratio"] > 0
    assert large["resident"]["peak_megabytes"] > 0
    assert set(large["peers_ms"]) == {"trim_messages", "langmem summarize_messages"}
    assert "80 messages" in printed


def test_condensing_counts_calls_and_facts_of_every_peer_and_none_after_a_restart(run: Run) -> None:
    found, printed = run(condensing.main, "--messages", "60", "--budget", "800")
    parties = {one["party"]: one for one in found["figures"]["parties"]}
    assert set(parties) == {
        "this memory",
        "SummarizationMiddleware",
        "ConversationSummaryBufferMemory",
        "langmem summarize_messages",
        "trim_messages",
    }
    assert found["figures"]["calls_after_restart"] == 0
    assert parties["this memory"]["calls"] == found["figures"]["summaries"]
    assert all(one["largest_tokens"] <= 800 for one in parties.values())
    assert "SummarizationMiddleware" in printed


def test_prefix_gives_a_share_for_every_party_and_whether_it_kept_within_the_budget(run: Run) -> None:
    found, printed = run(prefix.main, "--messages", "80", "--budget", "900")
    parties = {one["party"]: one for one in found["figures"]["parties"]}
    assert all(0 <= one["share"] <= 1 for one in parties.values())
    assert parties["this memory"]["within_budget"]
    assert not parties["whole history"]["within_budget"]
    assert parties["whole history"]["share"] > parties["trim_messages"]["share"]
    assert "whole history" in printed


def test_cover_facts_compares_each_level_with_random_sentences(run: Run) -> None:
    found, printed = run(cover_facts.main, "--messages", "150")
    levels = {(one["condenser"], one["level"]) for one in found["figures"]["levels"]}
    assert {("extractive", 1), ("scripted model", 1), ("extractive", 2), ("scripted model", 2)} <= levels
    assert "random" in printed


@pytest.mark.slow
def test_embedding_gives_the_vectors_of_chromas_function(run: Run) -> None:
    if find_minilm() is None:
        pytest.skip("the MiniLM files are not at hand")
    found, printed = run(embedding.main, "--texts", "4", "--rounds", "1")
    assert all(one["largest_difference"] <= 1e-5 for one in found["figures"]["texts"])
    assert "texts per second" in printed


@pytest.mark.slow
def test_recall_measures_the_sample_of_the_package(run: Run) -> None:
    found, printed = run(recall.main, "--budgets", "500", "--no-embeddings")
    assert [group["name"] for group in found["figures"]["groups"]] == ["sample"]
    assert "memory, recall view" in printed


@given(st.integers(0, 50), st.integers(2, 120))
def test_a_conversation_follows_from_its_seed_and_states_all_its_facts(seed: int, messages: int) -> None:
    held = conversation(messages, seed=seed)
    assert held == conversation(messages, seed=seed)
    facts = held.facts_until(messages)
    assert stated(facts, shown_text(held.messages)) == len(facts)
    assert [turn.message.type for turn in held.turns[:2]] == ["human", "ai"]


def test_a_fact_is_not_stated_where_only_its_value_or_only_its_subject_stands() -> None:
    fact = PlantedFact(kind="number", subject="copper kiln", value="4711 euros", number=0)
    assert fact.stated_in("user: the copper kiln comes to 4711 euros.")
    assert not fact.stated_in("the copper kiln")
    assert not fact.stated_in(f"the copper kiln {'x' * 400} 4711 euros")


@pytest.mark.parametrize(("one", "other", "length"), [(b"", b"a", 0), (b"abc", b"abd", 2), (b"abc", b"abc", 3)])
def test_a_shared_prefix_ends_at_the_first_byte_that_differs(one: bytes, other: bytes, length: int) -> None:
    assert prefix.shared_prefix(one, other) == length
