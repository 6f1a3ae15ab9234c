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
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks import condensing, cover_facts, embedding, fact_depth, prefix, recall, transcript_probes, turn_cost
from benchmarks.agent_transcripts import Probe, Transcript, plain, read_transcripts, searchable
from benchmarks.conversations import PlantedFact, conversation, shown_text, stated
from benchmarks.made_up_run import made_up_run
from benchmarks.paraphraser import Paraphraser
from benchmarks.transcript_windows import METHODS, Windows
from langchain_tiered_memory.decisions.counting import EstimatingCounter
from langchain_tiered_memory.embeddings import find_minilm
from langchain_tiered_memory.errors import InvalidInputError

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


def test_transcript_probes_measure_a_made_up_run_beside_every_window(run: Run) -> None:
    found, printed = run(transcript_probes.main, "--quick", "--budgets", "1500")
    cells = found["figures"]["probes"]
    assert {cell["kind"] for cell in cells} == {"edit_anchor", "file_return"}
    assert all(set(cell["shares"]) == {"this memory", *METHODS} for cell in cells)
    assert all(0 <= share <= 1 for cell in cells for share in cell["shares"].values())
    (cost,) = found["figures"]["cost"]
    assert cost["largest_tokens"] <= 1500
    assert not found["figures"]["faults"]
    assert cost["counted_calls"] > 0
    assert "window+paths" in printed


def test_transcripts_are_read_from_a_folder_with_their_probes_and_times(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "/a.py"}'}}
    rows = [
        {"role": "user", "content": "Read it.", "timestamp": "2025-01-01T10:00:00Z"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "1\tone"},
    ]
    probes = [{"at": 2, "kind": "file_return", "needle": "/a.py", "sources": [1], "gap": 7}]
    (tmp_path / "one.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "one.probes.json").write_text(json.dumps(probes), encoding="utf-8")
    (found,) = read_transcripts(tmp_path)
    assert [type(message) for message in found.messages] == [HumanMessage, AIMessage, ToolMessage]
    assert [after - before for before, after in zip(found.times, found.times[1:], strict=False)] == [20.0, 20.0]
    assert found.probes == (Probe(at=2, kind="file_return", needle="/a.py", sources=frozenset({1}), gap=7),)
    with pytest.raises(InvalidInputError, match="two"):
        read_transcripts(tmp_path, names=["two"])


def test_a_needle_is_found_behind_line_numbers_and_in_the_arguments_of_a_call() -> None:
    assert plain("  12\tone\n  13\t  two") == "one two"
    message = AIMessage("", tool_calls=[{"id": "c", "name": "edit", "args": {"edits": [{"old": "a  b"}]}}])
    assert "a b" in searchable(message)


def test_a_window_needs_as_many_tokens_as_its_messages_back_to_the_needle() -> None:
    messages = tuple(HumanMessage(f"word{number} " * 20) for number in range(6))
    probe = Probe(at=5, kind="edit_anchor", needle="word2", sources=frozenset({2}), gap=0)
    transcript = Transcript(name="t", messages=messages, times=tuple(map(float, range(6))), probes=(probe,))
    counter = EstimatingCounter()
    windows = Windows(transcript, counter=counter)
    needed = windows.needed_tokens(probe, "window")
    assert needed == sum(counter.count_message(message) for message in messages[2:5])
    assert windows.used_tokens(5, "window", needed) == needed
    assert windows.used_tokens(5, "window", needed - 1) < needed


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_probes_of_a_made_up_run_stand_in_the_messages_that_they_name(seed: int) -> None:
    held = made_up_run(turns=20, seed=seed)
    texts = [searchable(message) for message in held.messages]
    assert held == made_up_run(turns=20, seed=seed)
    for probe in held.probes:
        assert isinstance(held.messages[probe.at], AIMessage)
        assert all(place < probe.at and probe.needle in texts[place] for place in probe.sources)


def test_fact_depth_counts_what_every_party_states_beside_each_writer(run: Run) -> None:
    given = ("--turns", "60", "--seeds", "1", "--budget", "900", "--questions", "3")
    found, printed = run(fact_depth.main, *given)
    held = found["figures"]["held"]
    assert {one["writer"] for one in held} == {"rewords", "quotes", "no model"}
    assert {one["party"] for one in held if one["writer"] == "rewords"} == {
        "this memory",
        "SummarizationMiddleware",
        "ConversationSummaryBufferMemory",
        "ConversationSummaryMemory",
        "langmem summarize_messages",
    }
    ours = [one for one in held if one["party"] == "this memory"]
    assert all(one["tokens"] <= 900 and one["asked_tokens"] <= 900 for one in ours)
    assert all(0 <= share <= 1 for one in held for share in one["stated"].values())
    assert "langmem" in printed


def test_a_rewording_model_states_facts_in_other_words_and_the_last_value_of_a_corrected_one() -> None:
    held = conversation(80, seed=3)
    model = Paraphraser(held, counter=EstimatingCounter(), most_tokens=4000, forgets=0)
    answer = str(model.model.invoke(shown_text(held.messages)).text)
    facts = held.facts_until(80)
    assert stated(facts, answer) == len(facts)
    said = {turn.message.text for turn in held.turns if turn.fact is not None}
    assert not any(text in answer for text in said)
    corrected = [turn.fact for turn in held.turns if turn.fact is not None and turn.fact not in facts]
    assert corrected
    assert stated(corrected, answer) == 0
    assert answer == str(model.model.invoke(shown_text(held.messages)).text)


def test_a_rewording_model_that_rewrites_its_own_summary_loses_facts_each_time() -> None:
    held = conversation(80, seed=3)
    model = Paraphraser(held, counter=EstimatingCounter(), most_tokens=4000, forgets=0.2)
    text, left = shown_text(held.messages), [len(held.facts_until(80))]
    for _ in range(6):
        text = str(model.model.invoke(text).text)
        left.append(stated(held.facts_until(80), text))
    assert left == sorted(left, reverse=True)
    assert left[-1] < left[0] / 2


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
