"""Each benchmark runs at a tiny size, prints its tables and writes JSON of the promised shape."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langmem", reason="the benchmarks' peers are an extra")
pytest.importorskip("langchain_classic", reason="the benchmarks' peers are an extra")

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks import (
    blind_questions,
    condensing,
    cost_curve,
    cover_facts,
    direct,
    embedding,
    fact_depth,
    faults,
    file_readings,
    golden_views,
    hops,
    long_run,
    mixed_parts,
    prefix,
    recall,
    recorded_reader,
    reviewed_notes,
    session_page,
    tier_workloads,
    transcript_probes,
    turn_cost,
    unsound,
    workers,
)
from benchmarks.agent_replay import agent_turns
from benchmarks.agent_transcripts import Probe, Transcript, plain, read_transcripts, searchable
from benchmarks.chromium import find_chromium
from benchmarks.conversations import PlantedFact, conversation, shown_text, stated
from benchmarks.curve_entries import NAMED_SETTINGS, entries
from benchmarks.hops_source import named_in_documents, settings_set
from benchmarks.made_up_run import made_up_run
from benchmarks.other_parties import DeepAgents
from benchmarks.paraphraser import Paraphraser
from benchmarks.plain_facts import plain_talk
from benchmarks.planted_talk import planted_talk
from benchmarks.transcript_windows import METHODS, Windows
from benchmarks.turn_agents import empty_files, play_memory, play_peers
from benchmarks.turn_lists import measure_lists
from benchmarks.turn_steps import STEPS, hold_turns
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.models.embeddings import find_minilm
from langchain_tiered_memory.models.message_counting import EstimatingCounter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.servers import PostgresServer

Run = Callable[..., tuple[dict[str, Any], str]]

pytestmark = [pytest.mark.slow, pytest.mark.seldom(4)]
DRIVER = """
class Work: ...
class Ask: ...
class Errand: ...
Request: TypeAlias = Work | Ask | Errand
Flow: TypeAlias = Generator[Request, Any, T]

def do(call) -> Flow[int]:
    return (yield Work(call))

def ask() -> Flow[int]:
    return (yield Ask())

def journey() -> Flow[int]:
    return (yield from rooms.asks.ask())

def guarded(flow) -> Flow[int]:
    return (yield from flow)

def longer() -> Flow[int]:
    return (yield from journey())

def handed() -> Flow[int]:
    return ask()
"""
"""Five flows, of which one never waits; `handed` makes one and is none."""

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


def test_what_a_model_wrote_is_found_again_and_shown(run: Run) -> None:
    found, printed = run(recorded_reader.main)
    figures = found["figures"]
    assert figures["unknown"] <= 0.1 * figures["asked"]
    assert figures["shares"]["this memory, the recorded model"]["all"] >= 0.9
    assert "rare sentences" in printed


def test_recorded_answers_to_reviews_make_room_and_lose_no_more_than_their_slips(run: Run) -> None:
    found, printed = run(reviewed_notes.main)
    before, after = found["figures"]["before"], found["figures"]["after"]
    assert after["stated"] > before["stated"] + 0.15
    assert after["notes"] < before["notes"] / 2
    assert after["lost"] == 1
    assert "reviews as recorded" in printed


@pytest.mark.skipif(find_minilm() is None, reason="the files of MiniLM are not here")
def test_blind_questions_are_dealt_to_three_readers_by_three_methods_and_counted(run: Run, tmp_path: Path) -> None:
    talk = [{"id": str(n), "speaker": "ab"[n % 2], "text": f"Pump {n} is in hall {n % 7}."} for n in range(60)]
    questions = [{"q": f"Where is pump {n}?", "answer": f"hall {n % 7}", "evidence": [str(n)]} for n in (3, 8, 20)]
    path, out = tmp_path / "talk.json", tmp_path / "dealt"
    sittings = [{"date": "2026-01-05", "turns": talk}]
    path.write_text(json.dumps({"sessions": sittings, "questions": questions}), encoding="utf-8")
    run(blind_questions.main, "deal", str(out), str(path), "--budget", "300")
    key = json.loads((out / "key.json").read_text(encoding="utf-8"))
    assert sorted(one["answer"] for one in key) == ["hall 1", "hall 3", "hall 6"]
    for reader in range(3):
        assert {one["dealt"][reader] for one in key} == set(blind_questions.METHODS)
    for one in key:
        texts = [(out / f"reader-{reader}" / f"{one['number']:02}.txt").read_text("utf-8") for reader in range(3)]
        assert all(text.rstrip().endswith(one["question"]) for text in texts)
        assert len(set(texts)) == 3
    judged = tmp_path / "judged.json"
    judged.write_text(json.dumps({"reader-0/01": 1, "reader-1/01": 0.5, "reader-2/01": 0}), encoding="utf-8")
    found, _ = run(blind_questions.main, "count", str(out), "--judged", str(judged))
    assert sorted(mark for name, mark in found["figures"].items() if name.startswith("all")) == [0, 0.5, 1]


@pytest.mark.skipif(find_chromium() is None and not os.environ.get("CI"), reason="there is no Chromium here")
def test_session_page_gives_the_times_of_a_browser_and_the_size_of_the_file(run: Run) -> None:
    found, printed = run(session_page.main, "--messages", "60", "--rounds", "1")
    assert found["figures"]["open_seconds"] > 0
    assert found["figures"]["megabytes"] > 0.05
    assert "0 messages of 60 found." in printed


def test_turn_cost_gives_times_ratios_and_memory_for_each_size(run: Run) -> None:
    found, printed = run(
        turn_cost.main,
        "--sizes",
        "40,80",
        "--turns",
        "2",
        "--agent-messages",
        "6",
        "--build-seconds",
        "0.001",
        "--no-postgres",
    )
    figures = found["figures"]
    assert [(one["database"], one["messages"]) for one in figures["sessions"]] == [("SQLite", 40)]
    assert any("SQLite, 80 messages: left out, building would take" in one for one in figures["left_out"])
    (session,) = figures["sessions"]
    assert session["built"]["summaries"] > 0
    assert session["resident"]["peak_megabytes"] > 0
    assert set(session["steps"]) == set(STEPS)
    for step in session["steps"].values():
        assert step["clock_ms"]["count"] == 2
        assert 0 < step["clock_ms"]["median"] <= step["clock_ms"]["largest"]
        assert step["ratio"] == 1
    assert set(figures["lists"]) == {"40", "80"}
    assert {"nothing", "trim_messages", "SummarizationMiddleware"} < set(figures["agents"])
    assert "40 messages" in printed


@pytest.mark.slow
def test_tiers_are_measured_beside_the_sources_own_algorithm(run: Run) -> None:
    found, printed = run(tier_workloads.main, "--quick")
    rows = found["figures"]
    assert rows["loop of 48"]["cold: source"] >= rows["loop of 48"]["cold"]
    assert all(row["cleanups"] == row["in use left"] == 0 for row in rows.values())
    assert "loop of 48" in printed
    assert "measured: at most" in printed


@pytest.mark.slow
def test_summaries_under_the_number_of_another_part_are_noticed(run: Run) -> None:
    found, printed = run(mixed_parts.main)
    (figures,) = found["figures"].values()
    assert figures["own refused by both"] <= 0.05 * figures["own"]
    assert figures["mixed refused by both"] >= max(figures["mixed refused"], 0.7 * figures["mixed"])
    assert "made-up" in printed


def test_a_context_that_differs_from_the_one_that_was_kept_is_named(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "golden.json"
    few = ("--settings", "economy", "--budgets", "600", "--messages", "60", "--places", "2", "--questions")
    found, _ = run(golden_views.main, *few, "--keep", str(kept))
    assert found["figures"] == {"contexts": 8, "differ": 0}
    found, _ = run(golden_views.main, "--against", str(kept))
    assert [target["met"] for target in found["targets"]] == [True]
    golden = json.loads(kept.read_text(encoding="utf-8"))
    golden["contexts"][1]["messages"] = "other bytes"
    del golden["contexts"][3]
    kept.write_text(json.dumps(golden), encoding="utf-8")
    found, printed = run(golden_views.main, "--against", str(kept))
    assert [target["met"] for target in found["targets"]] == [False]
    assert found["figures"] == {"contexts": 8, "differ": 2}
    assert "made-up talk economy 600 30 asked" in printed


def test_direct_asks_for_each_fact_in_each_form_within_each_budget(run: Run) -> None:
    given = ("--turns", "30", "--facts", "1", "--kinds", "talk", "--forms", "bare,order", "--budgets", "600,1000")
    found, printed = run(direct.main, *given)
    cells = found["figures"]["cells"]
    assert {(one["form"], one["budget"]) for one in cells} == {(f, b) for f in ("bare", "order") for b in (600, 1000)}
    assert all(one["asked"] == one["answered"] == 1 and not one["free_where_missing"] for one in cells)
    assert "greeting" not in printed


@pytest.mark.postgres
def test_turns_and_agents_are_measured_on_postgresql_too(postgres: PostgresServer) -> None:
    wheres = {("PostgreSQL", 0): postgres.new_database()}
    steps = hold_turns(wheres, 2)[("PostgreSQL", 0)]
    assert all(len(steps[step].clock) == len(steps[step].processor) == 2 for step in STEPS)
    played = play_memory(made_up_run(turns=3).messages, {"PostgreSQL": postgres.new_database})
    assert set(played) == {
        f"{what}, PostgreSQL, {asked}"
        for what in ("this memory", "its session alone")
        for asked in ("no question", "with a question", *(["with a question and vectors"] if find_minilm() else []))
    }
    assert all(one.costs.clock and not one.refused for one in played.values())


def test_every_agent_answers_each_request_of_the_run(tmp_path: Path) -> None:
    messages = made_up_run(turns=4).messages
    peers, remarks = play_peers(messages, tmp_path)
    played = peers | play_memory(messages, {"SQLite": empty_files(tmp_path)})
    requests = len(agent_turns(messages))
    assert requests > 2
    assert {name: len(one.costs.clock) for name, one in played.items()} == dict.fromkeys(played, requests)
    assert all(bool(one.between.clock) == ("SQLite" in name) for name, one in played.items())
    assert ("deepagents' SummarizationMiddleware" in peers) == (not any("deepagents" in one for one in remarks))


def test_lists_of_messages_are_bounded_by_each_peer() -> None:
    found = measure_lists(120)
    assert set(found) == {
        "trim_messages",
        "langmem summarize_messages",
        "SummarizationMiddleware, first call",
        "SummarizationMiddleware, later calls",
    }
    assert all(one.clock and min(one.clock) > 0 for one in found.values())


def test_an_agents_turns_are_what_came_in_before_each_answer() -> None:
    first, second = HumanMessage("a"), ToolMessage("b", tool_call_id="c")
    answers = [AIMessage("1"), AIMessage("said without being asked"), AIMessage("2")]
    assert agent_turns([first, answers[0], answers[1], second, answers[2], HumanMessage("unanswered")]) == [
        ([first], answers[0]),
        ([second], answers[2]),
    ]


@pytest.mark.slow
def test_hops_runs_a_checkout_and_counts_what_a_request_takes(run: Run) -> None:
    found, printed = run(hops.main, "--messages", "12", "--agent-messages", "8")
    now = found["figures"]["now"]
    for name in ("add_messages", "context", "agent request"):
        row = now["rows"][f"files / functions / calls, {name}"]
        assert 0 < row["files"] <= row["functions"] <= row["calls"]
    for way in ("context, no question", "context, recall", "agent, no recall", "agent, recall"):
        row = now["rows"][f"reading transactions, statements (mean): {way}"]
        assert 0 < row["reads"] <= row["statements"]
        assert row["requests"] > 0
        assert row["refused"] == 0
    names = now["rows"]["public names / named in a document"]
    assert 0 < names["documented"] <= names["names"]
    settings = now["rows"]["settings / set by a test, benchmark, document"]
    assert 0 < settings["set"] <= settings["settings"]
    assert "wanted" in printed


def test_hops_reads_the_source_of_a_checkout_alone(run: Run, tmp_path: Path) -> None:
    package = tmp_path / "checkout" / "langchain_tiered_memory"
    (package / "room").mkdir(parents=True)
    (package / "driver.py").write_text(DRIVER, encoding="utf-8")
    (package / "room" / "one.py").write_text(
        "class Thing: ...\nx = y._z  # noqa: SLF001 - a reason\n", encoding="utf-8"
    )
    (package / "room" / "two.py").write_text("class Thing: ...\n", encoding="utf-8")
    here = str(tmp_path / "checkout")
    found, printed = run(hops.main, "--static", "--root", here, "--before", here)
    assert found["figures"]["before"] == found["figures"]["now"]
    source = found["figures"]["now"]["source"]
    assert source["modules"] == 3
    assert source["largest_folders"] == [2, 1]
    assert source["classes"] == 4
    assert source["private_uses"] == 1
    assert source["ordered_modules"] is None
    assert source["flows"] == {"generators": 5, "waiting": 4}
    assert "flows that are generators" in printed


def test_names_and_settings_count_where_a_document_or_code_has_them(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text("Group(first=1)\nOther(second=2)\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("Open a `Thing` with `Group(third=3)`; Things are many.", encoding="utf-8")
    assert named_in_documents(tmp_path, ["Thing", "Thin", "Group"]) == {"Thing", "Group"}
    fields = {"Group.first", "Group.second", "Group.third", "Group.fourth"}
    assert settings_set(tmp_path, fields) == {"Group.first", "Group.third"}


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
    assert found["figures"]["calls_where_it_fits"] == 0
    assert parties["this memory"]["calls"] <= found["figures"]["chunks_by_the_model"] <= found["figures"]["summaries"]
    assert all(one["largest_tokens"] <= 800 for one in parties.values())
    assert "SummarizationMiddleware" in printed


@pytest.mark.seldom(4)
def test_faults_counts_what_was_tried_survived_and_lost(run: Run) -> None:
    pytest.importorskip("langchain_community")
    given = ("--kills", "1", "--writers", "2", "--messages", "6", "--characters", "300")
    found, printed = run(faults.main, *given, "--columns", "45", "--disk-sizes", "600000")
    tried = {(trial["fault"], trial["party"]) for trial in found["figures"]["trials"]}
    assert {fault for fault, party in tried if party == "this memory"} == {
        "kills", "writers", "damaged rows", "full disk", "bad summarisers", "hostile texts",
    }  # fmt: skip
    assert ("kills", "FileChatMessageHistory") in tried
    ours = [trial for trial in found["figures"]["trials"] if trial["party"] == "this memory"]
    assert [trial for trial in ours if trial["lost"] or not trial["survived"]] == []
    assert "messages lost" in printed


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


def test_unsound_takes_honest_summaries_and_refuses_others(run: Run) -> None:
    found, printed = run(unsound.main, "--messages", "60")
    figures = found["figures"]
    assert figures["false_alarms"] <= 0.05
    assert figures["misses"] <= 0.15
    assert figures["false_marks"] == 0
    assert figures["invented_marked"] >= 0.8
    assert "half a sentence" in printed


@pytest.mark.postgres
def test_workers_give_rates_and_waits_for_one_session_and_for_many_on_both_databases(
    run: Run, postgres_url: str
) -> None:
    given = ("--workers", "1,3", "--seconds", "0.2", "--processes", "2", "--postgres", postgres_url)
    found, printed = run(workers.main, *given)
    cells = found["figures"]["cells"]
    assert [(one["database"], one["shared"], one["workers"]) for one in cells] == [
        (database, shared, count)
        for database in ("SQLite", "PostgreSQL")
        for shared in (True, False)
        for count in (1, 3)
    ]
    assert all(one["writes"] >= one["workers"] and one["least_each"] >= 1 for one in cells)
    assert all(one["median_ms"] <= one["p95_ms"] <= one["longest_ms"] for one in cells)
    assert "one session" in printed


def test_embedding_gives_the_vectors_of_chromas_function(run: Run) -> None:
    if find_minilm() is None:
        pytest.skip("the MiniLM files are not at hand")
    found, printed = run(embedding.main, "--texts", "4", "--rounds", "1")
    assert all(one["largest_difference"] <= 1e-5 for one in found["figures"]["texts"])
    assert "texts per second" in printed


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


def test_file_readings_of_an_agent_with_its_own_tools_are_each_held_against_their_text(run: Run) -> None:
    pytest.importorskip("deepagents", reason="deepagents is not installed: pip install deepagents")
    found, _ = run(file_readings.main, "--turns", "4", "--budgets", "16000")
    (sent,) = found["figures"]["runs"]
    assert sent["pointed"] > 0
    assert sent["astray"] == 0


def test_a_long_run_goes_on_after_a_kill_and_tells_of_every_tier(run: Run, tmp_path: Path) -> None:
    picture = tmp_path / "run.png"
    found, printed = run(long_run.main, "--quick", "--picture", str(picture))
    figures = found["figures"]
    assert (figures["killed"], len(figures["restored"])) == (1, 1)
    assert figures["largest_share"] <= long_run.WINDOW_SHARE
    assert figures["faults"] == figures["refused"] == figures["problems"] == []
    assert figures["contents_lost"] == 0
    assert figures["accesses"]["hot"] > 0
    assert figures["needless_tokens"] >= figures["tokens_that_pointing_saves"]
    assert picture.exists() or "matplotlib" in printed
    assert "every context valid" in printed


def test_cost_curve_bills_every_entry_for_all_that_it_sends_writes_and_condenses(run: Run, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    found, printed = run(cost_curve.main, "--quick", "--record", str(record))
    entered, left_out = entries(hermes=None)
    points = found["figures"]["curve"]
    for kind in ("agent", "chat"):
        names = {entry.name for entry in entered if kind in entry.kinds}
        assert {point["entry"] for point in points if point["kind"] == kind} == names
    for point in points:
        bill = point["bill"]
        assert 0 < bill["cached"] < bill["sent"]
        assert all(0 <= share <= 1 for share in point["shown"].values())
        uncached, written = bill["sent"] - bill["cached"], bill["answered"] + bill["condensing_written"]
        assert point["billed"]["cached 0.5, output 5"] == pytest.approx(
            uncached + 0.5 * bill["cached"] + bill["condensing_read"] + 5 * written
        )
    mine = [point for point in points if point["ours"]]
    assert {point["settings"] for point in mine} == set(NAMED_SETTINGS)
    assert all(point["largest"] <= point["window"] and not point["over"] + point["invalid"] for point in mine)
    assert any(point["bill"]["condensing_calls"] for point in mine)
    (whole,) = (point for point in points if point["kind"] == "agent" and point["whole"])
    assert set(whole["shown"].values()) == {1.0}
    assert whole["over"] > 0
    assert not any(point["edge"]["cached 0.1, output 1"] for point in points if not point["fits"])
    assert all(line in printed for line in left_out)
    again, _ = run(cost_curve.main, "--quick", "--record", str(record))
    assert again["figures"] == found["figures"]


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
    assert {one["writer"] for one in held} == {"rewords", "quotes", "loses a fifth", "no model"}
    peers = {
        "SummarizationMiddleware",
        "ConversationSummaryBufferMemory",
        "ConversationSummaryMemory",
        "langmem summarize_messages",
        *(["deepagents' summarisation"] if DeepAgents.missing() is None else []),
    }
    assert {one["party"] for one in held if one["writer"] == "rewords"} == {"this memory", *peers}
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


def test_facts_said_plainly_stand_in_what_users_say_and_follow_from_the_seed(tmp_path: Path) -> None:
    said = [{"role": role, "content": f"It rained on day {n}."} for n in range(200) for role in ("user", "assistant")]
    (tmp_path / "one.json").write_text(json.dumps({"messages": said}))
    held = plain_talk(tmp_path, 400, seed=3)
    assert held == plain_talk(tmp_path, 400, seed=3)
    planted = [turn for turn in held.turns if turn.fact is not None]
    assert len(planted) > 150
    assert all(turn.message.type == "human" for turn in planted)
    assert all(turn.fact and turn.fact.stated_in(str(turn.message.text).casefold()) for turn in planted)
    holding = held.facts_until(400)
    assert len({fact.subject for fact in holding}) == len(holding) < len(planted)
    with pytest.raises(ValueError, match="name more messages"):
        plain_talk(tmp_path, 100)
    for half in ("seen", "held back"):
        stated = [turn for turn in plain_talk(tmp_path, 400, listed=half).turns if turn.fact is not None]
        assert len(stated) == 95
        assert all(turn.fact and turn.fact.stated_in(str(turn.message.text).casefold()) for turn in stated)


@pytest.mark.parametrize(("one", "other", "length"), [(b"", b"a", 0), (b"abc", b"abd", 2), (b"abc", b"abc", 3)])
def test_a_shared_prefix_ends_at_the_first_byte_that_differs(one: bytes, other: bytes, length: int) -> None:
    assert prefix.shared_prefix(one, other) == length


def test_facts_planted_in_talk_stand_in_their_messages_and_follow_from_the_seed(tmp_path: Path) -> None:
    said = [
        {"role": role, "content": f"We spoke of number {n}. It was fine."}
        for n in range(40)
        for role in ("user", "assistant")
    ]
    (tmp_path / "one.json").write_text(json.dumps({"messages": said}))
    held = planted_talk(tmp_path, 60, seed=3, facts_each=4)
    assert held == planted_talk(tmp_path, 60, seed=3, facts_each=4)
    planted = [turn for turn in held.turns if turn.fact is not None]
    assert len(planted) > 5
    assert all(turn.fact and turn.fact.stated_in(str(turn.message.text).casefold()) for turn in planted)
    assert [turn.message.type for turn in held.turns[:4]] == ["human", "ai", "human", "ai"]
    with pytest.raises(FileNotFoundError, match="no conversations"):
        planted_talk(tmp_path / "nothing", 10)
