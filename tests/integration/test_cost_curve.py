"""What the cost curve counts: billed tokens, prefixes, what is in view, and who stands on the outer edge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langmem", reason="the benchmarks' peers are an extra")
pytest.importorskip("langchain_classic", reason="the benchmarks' peers are an extra")

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.billing import RATES, Bill, Meter, Rates
from benchmarks.cost_curve import measure
from benchmarks.curve_entries import Entry, Place
from benchmarks.curve_parties import Listed
from benchmarks.curve_picture import draw
from benchmarks.curve_play import play, read_record, write_record
from benchmarks.curve_report import Point, on_edge, points_of, report_of
from benchmarks.curve_runs import made_up_chat, run_of_conversation, run_of_transcript, words_of
from benchmarks.curve_writers import writer_for
from benchmarks.made_up_run import made_up_run
from benchmarks.parties import Counting, WholeHistory
from benchmarks.summariser import KnownSentences
from langchain_tiered_memory.conversations import sample_conversation
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS, EstimatingCounter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


pytestmark = pytest.mark.slow

TEXTS = st.text(alphabet="ab c.", min_size=1, max_size=12)
MESSAGES = st.lists(
    st.builds(lambda kind, text: kind(text), st.sampled_from([HumanMessage, AIMessage, SystemMessage]), TEXTS),
    max_size=8,
)


class Counted(EstimatingCounter):
    """Tells how many messages it was given."""

    messages = 0

    def count_message(self, message: BaseMessage) -> int:
        self.messages += 1
        return super().count_message(message)


class Forgetful(WholeHistory):
    """Shows the newest message alone, and now and then fails."""

    name = "forgetful"

    def context(self) -> Sequence[BaseMessage]:
        if len(self._messages) % 5 == 0:
            msg = "no context today"
            raise RuntimeError(msg)
        return self._messages[-1:]


WHOLE = Entry(name="whole history", make=lambda _: Listed(WholeHistory()), whole=True)
FORGETFUL = Entry(name="forgetful", make=lambda _: Listed(Forgetful()))


@given(before=MESSAGES, more=MESSAGES)
def test_what_was_sent_before_is_cached_and_the_rest_is_not(before: list[BaseMessage], more: list[BaseMessage]) -> None:
    counter = EstimatingCounter()
    meter = Meter(counter)
    first, second = meter.request(before, tool_tokens=7), meter.request([*before, *more], tool_tokens=7)
    own = sum(counter.count_message(message) for message in before)
    assert (first.tokens, first.cached) == (PRIMING_TOKENS + 7 + own, 0)
    assert second.cached == 7 + own
    assert second.tokens == first.tokens + sum(counter.count_message(message) for message in more)


@given(before=MESSAGES, after=MESSAGES)
def test_a_request_never_has_more_cached_than_it_sends_or_than_both_begin_with(
    before: list[BaseMessage], after: list[BaseMessage]
) -> None:
    counter = EstimatingCounter()
    meter = Meter(counter)
    meter.request(before)
    sent = meter.request(after)
    alike = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), None)
    alike = min(len(before), len(after)) if alike is None else alike
    least = sum(counter.count_message(message) for message in after[:alike])
    most = sum(counter.count_message(message) for message in after[: alike + 1])
    assert least <= sent.cached <= most <= sent.tokens


def test_a_prefix_goes_on_into_the_first_message_that_differs_and_ends_where_tools_change() -> None:
    meter = Meter(EstimatingCounter())
    told = "The harbour office opens at nine. " * 50
    meter.request([SystemMessage(f"{told} It closes at five.")], tool_tokens=10)
    grown = meter.request([SystemMessage(f"{told} It closes at six."), HumanMessage("hi")], tool_tokens=10)
    assert 0.9 * grown.tokens < grown.cached < grown.tokens
    assert meter.request([SystemMessage(f"{told} It closes at six.")], tool_tokens=11).cached == 0


def test_calls_of_tools_are_compared_by_their_arguments_and_equal_copies_are_alike() -> None:
    def asked(path: str) -> list[BaseMessage]:
        call = {"id": "c1", "name": "read", "args": {"path": path}}
        return [HumanMessage("Read it."), AIMessage("", tool_calls=[call]), ToolMessage("ok", tool_call_id="c1")]

    meter = Meter(EstimatingCounter())
    whole = meter.request(asked("/a.py"))
    assert meter.request(asked("/a.py")).cached == whole.tokens - PRIMING_TOKENS
    assert meter.request(asked("/b.py")).cached < whole.tokens - PRIMING_TOKENS


def test_what_condensing_reads_is_compared_with_its_last_call_and_the_last_request_and_billed_whole() -> None:
    run = made_up_chat(120)
    long = [SystemMessage("Write a summary of what follows. " * 200)]

    class Asking(WholeHistory):
        """Asks the model for a summary of each message behind the same instructions."""

        def add(self, message: BaseMessage, at: float) -> None:
            super().add(message, at)
            writer.model.invoke([*long, message])

    counter = EstimatingCounter()
    writer = writer_for(run, 4000, counter=counter, writes="quotes")
    entry = Entry(name="asking", make=lambda _: Listed(Asking()), written=True)
    bill = play(run, entry, replace(_place(run.kind, counter), writer=writer)).bill
    instructions = counter.count_message(long[0])
    said = sum(len(step.arrived) + 1 for step in run.steps)
    assert bill.condensing_calls == said == len(writer.calls)
    assert bill.condensing_read == writer.read_tokens
    assert instructions * (said - 1) <= bill.condensing_cached < bill.condensing_read
    assert bill.billed(RATES[0]) > bill.condensing_read


def test_each_message_is_counted_once_however_often_it_is_sent() -> None:
    counter = Counted()
    run = run_of_transcript(made_up_run(turns=30))
    played = play(run, WHOLE, _place(run.kind, counter))
    said = sum(len(step.arrived) + 1 for step in run.steps)
    assert played.requests == len(run.steps) > 20
    assert counter.messages <= 2 * said
    assert played.bill.cached > 0.8 * played.bill.sent


def test_the_whole_history_shows_all_and_the_last_message_next_to_nothing() -> None:
    for run in (run_of_transcript(made_up_run(turns=30)), made_up_chat(60)):
        whole = play(run, WHOLE, _place(run.kind))
        assert whole.shown
        assert all(share == 1 for shares in whole.shown.values() for share in shares)
        little = play(run, FORGETFUL, _place(run.kind))
        assert {measure: len(shares) for measure, shares in little.shown.items()} == {
            measure: len(shares) for measure, shares in whole.shown.items()
        }
        assert sum(map(sum, little.shown.values())) < 0.2 * sum(map(sum, whole.shown.values()))
        assert little.refused > 0
        assert "no context today" in " ".join(little.faults)
        assert little.bill.answered == whole.bill.answered
        assert little.bill.sent < whole.bill.sent


def test_a_chat_ends_with_its_questions_and_their_evidence_is_what_the_messages_say_with_the_facts() -> None:
    run = run_of_conversation(sample_conversation(), questions=3)
    asked = [step for step in run.steps if step.evidence is not None]
    assert 0 < len(asked) <= 3
    assert run.steps[-len(asked) :] == tuple(asked)
    said = {words_of(str(message.text)) for message in run.talk.messages}
    assert all(turn in said for step in asked if step.evidence for turn in step.evidence.turns)
    sent = [words_of(str(message.text)) for step in run.steps for message, _ in step.arrived]
    sent += [words_of(str(step.answer.text)) for step in run.steps]
    assert all(any(text in one for one in sent) for text in said)
    assert all(len(step.arrived) == 1 for step in run.steps[1:])
    facts = [turn.fact for turn in run.talk.turns if turn.fact]
    assert facts
    assert all(fact in facts for step in run.steps for fact in step.facts)


def test_output_and_cached_input_cost_what_the_rates_say() -> None:
    bill = Bill(sent=100, cached=60, answered=5) + Bill(condensing_calls=2, condensing_read=30, condensing_written=10)
    assert bill.billed(Rates(cached=0.1, output=1)) == pytest.approx(40 + 6 + 30 + 15)
    assert bill.billed(Rates(cached=0.5, output=5)) == pytest.approx(40 + 30 + 30 + 75)


def test_on_the_edge_stands_who_keeps_within_the_window_and_is_not_beaten_in_everything() -> None:
    cheap = _point("cheap", sent=100, files=0.5)
    dear, waste = _point("dear", sent=200, files=0.9), _point("waste", sent=300, files=0.9)
    over = replace(_point("over", sent=50, files=1.0), over=5)
    points = [cheap, dear, waste, over]
    assert [point.entry for point in points if on_edge(point, points)] == ["cheap", "dear"]
    assert dear.covers(waste, RATES[0])
    assert not dear.covers(cheap, RATES[0])
    assert on_edge(replace(cheap, entry="twin"), points)


def test_a_target_names_what_beats_a_peer_and_judges_none_that_goes_over_its_window() -> None:
    run = run_of_transcript(made_up_run(turns=30))
    mine, peer = replace(WHOLE, name="mine", ours=True, whole=False), replace(WHOLE, name="peer", whole=False)
    entered = [mine, peer, replace(FORGETFUL, name="small")]
    for window, met in ((10**6, True), (1000, None)):
        played = measure([run], entered, windows=[window])
        targets = {target.aim: target for target in report_of(played, entered, settings={}).targets}
        found = [target for aim, target in targets.items() if aim.endswith("in view than peer")]
        assert [target.met for target in found] == [met]
        assert "mine" in found[0].measured


def test_a_record_gives_back_what_was_written(tmp_path: Path) -> None:
    run = made_up_chat(12)
    played = play(run, WHOLE, _place(run.kind))
    write_record(tmp_path / "record.jsonl", played)
    write_record(tmp_path / "record.jsonl", played)
    assert read_record(tmp_path / "record.jsonl") == [played, played]
    assert read_record(tmp_path / "none.jsonl") == []


def test_the_picture_is_drawn_where_matplotlib_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = [run_of_transcript(made_up_run(turns=12)), made_up_chat(30)]
    played = measure(runs, [WHOLE, FORGETFUL], windows=[2000, 4000])
    assert draw(points_of(played, [WHOLE, FORGETFUL]), tmp_path / "curve.png") is None
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@given(
    known=st.lists(st.text(alphabet="ab .", min_size=1, max_size=30), max_size=20, unique=True), rest=st.text("ab .")
)
def test_known_sentences_are_found_where_they_stand_first(known: list[str], rest: str) -> None:
    text = rest + "".join(known[::2]) + rest
    places = {sentence: text.find(sentence) for sentence in known if sentence in text}
    assert KnownSentences(known).found_in(text) == sorted(places, key=lambda sentence: places[sentence])


def _place(kind: str, counter: EstimatingCounter | None = None) -> Place:

    counter = counter or EstimatingCounter()
    return Place(
        kind=kind,  # type: ignore[arg-type]
        window=4000,
        counter=counter,
        counting=Counting(counter),
        writer=None,
        embeddings=None,
        hermes=None,
    )


def _point(name: str, *, sent: int, files: float) -> Point:
    return Point(
        entry=name,
        ours=False,
        settings=None,
        whole=False,
        kind="agent",
        window=1000,
        bill=Bill(sent=sent),
        shown={"files": files},
        requests=10,
        over=0,
        invalid=0,
        refused=0,
        largest=900,
        median_ms=1.0,
        p95_ms=2.0,
    )
