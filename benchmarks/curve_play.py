"""Plays one run with one contestant: what each request costs, what it shows, what it takes."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from benchmarks.billing import LEAST_CACHED, Bill, Meter
from benchmarks.conversations import stated
from benchmarks.curve_runs import words_of
from benchmarks.provider_rules import check_valid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from benchmarks.billing import Reading, Sent
    from benchmarks.curve_entries import Entry, Place
    from benchmarks.curve_runs import Evidence, Kind, Run, Step
    from langchain_tiered_memory.protocols import TokenCounter

Measure: TypeAlias = Literal["near edits", "far edits", "files", "evidence", "evidence words", "facts"]
MEASURES: dict[Kind, tuple[Measure, ...]] = {
    "agent": ("near edits", "far edits", "files"),
    "chat": ("evidence", "evidence words", "facts"),
}
"""What is looked for in a request: the old text of the edit that comes next, last seen less than 8,000 tokens ago or
longer; a file that is come back to; all messages that answer a question, whole; how much of their words; planted facts
that hold, without a question."""
FAR_TOKENS = 8000
"""Since an edit's text was last seen: from there on it counts as far."""
_RUN_OF_WORDS = 5
_FAULTS_KEPT = 5


@dataclass(slots=True, kw_only=True)
class Played:
    """One run with one contestant within one window."""

    entry: str
    run: str
    kind: Kind
    window: int
    bill: Bill = field(default_factory=Bill)
    requests: int = 0
    largest: int = 0
    """Tokens of the largest request."""
    over: int = 0
    """Requests larger than the window."""
    invalid: int = 0
    """Requests that some provider would refuse."""
    refused: int = 0
    """Requests that were never made, for an error."""
    faults: list[str] = field(default_factory=list)
    """The first few of those."""
    shown: dict[Measure, list[float]] = field(default_factory=dict)
    """Of each thing looked for, how much was in view (0 to 1)."""
    milliseconds: list[float] = field(default_factory=list)
    """Of the processor, for each request with its answer; the condensing model's own are left out."""


def play(run: Run, entry: Entry, place: Place) -> Played:
    """All requests of `run`."""
    played = Played(entry=entry.name, run=run.name, kind=run.kind, window=place.window)
    contestant = entry.make(place)
    player = _Player(played, place.counter, own=entry.own)
    try:
        for number, step in enumerate(run.steps):
            sent: Sequence[BaseMessage] | None = None
            began = _clock(place)
            try:
                sent = contestant.request(step.arrived, step.answer)
            except Exception as error:  # noqa: BLE001 - whatever somebody's code raises: the run goes on without
                player.refuse(number, error)
            took = _clock(place) - began
            player.condense(place)
            tool_tokens = place.counter.count_tools(contestant.tools)
            player.look(number, step, sent or (), tool_tokens=tool_tokens)
            began = _clock(place)
            contestant.answered(step.answer, step.at)
            played.milliseconds.append(1000 * (took + _clock(place) - began))
            player.condense(place)
            played.bill += Bill(answered=place.counter.count_message(step.answer))
    finally:
        contestant.close()
    return played


def _clock(place: Place) -> float:
    """Seconds of the processor without those of the condensing model."""
    return time.process_time() - (place.writer.seconds if place.writer else 0.0)


def write_record(to: Path, played: Played) -> None:
    """Add a line to a file of runs."""
    with to.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(played), ensure_ascii=False) + "\n")


def read_record(path: Path) -> list[Played]:
    """The runs in such a file; none where there is no file."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Played(**row | {"bill": Bill(**row["bill"])}) for row in rows]


class _Player:
    """Notes what each request is like."""

    def __init__(self, played: Played, counter: TokenCounter, *, own: bool) -> None:
        self._played = played
        self._own = own
        self._meter, self._condensing = Meter(counter), Meter(counter)
        self._condensed = 0
        self._words: dict[bytes, str] = {}

    def refuse(self, number: int, error: Exception) -> None:
        """There was no request."""
        self._played.refused += 1
        self._fault(f"request {number}: {type(error).__name__}: {error}")

    def condense(self, place: Place) -> None:
        """What the condensing model was asked and wrote since this was called last."""
        if place.writer is None:
            return
        prompts = place.writer.prompts[self._condensed :]
        for prompt, call in zip(prompts, place.writer.calls[self._condensed :], strict=True):
            before = self._meter.alike(prompt)
            alike = max(self._condensing.request(prompt).cached, before)
            self._played.bill += Bill(
                condensing_calls=1,
                condensing_read=call.read_tokens,
                condensing_written=call.written_tokens,
                condensing_cached=alike if alike >= LEAST_CACHED else 0,
                condensing_own_cached=before if self._own and before >= LEAST_CACHED else 0,
            )
        self._condensed += len(prompts)

    def look(self, number: int, step: Step, sent: Sequence[BaseMessage], *, tool_tokens: int) -> None:
        """What was sent, or nothing."""
        readings: Sequence[Reading] = ()
        if sent:
            request = self._meter.request(sent, tool_tokens=tool_tokens)
            readings = request.messages
            self._count(number, step, sent, request)
        self._played.requests += 1
        for probe in step.probes:
            near: Measure = "near edits" if probe.gap < FAR_TOKENS else "far edits"
            measure = near if probe.kind == "edit_anchor" else "files"
            self._note(measure, float(any(probe.needle in reading.text for reading in readings)))
        if step.evidence is not None:
            whole, words = self._evidence(step.evidence, readings)
            self._note("evidence", float(whole))
            self._note("evidence words", words)
        if step.facts:
            text = "\n".join(str(message.text) for message in sent)
            self._note("facts", stated(step.facts, text) / len(step.facts))

    def _count(self, number: int, step: Step, sent: Sequence[BaseMessage], request: Sent) -> None:
        played = self._played
        played.bill += Bill(sent=request.tokens, cached=request.cached)
        played.largest = max(played.largest, request.tokens)
        played.over += request.tokens > played.window
        found = check_valid(sent, complete=bool(step.arrived))
        played.invalid += bool(found)
        if found:
            self._fault(f"request {number}: {found[0]}")

    def _evidence(self, evidence: Evidence, readings: Sequence[Reading]) -> tuple[bool, float]:
        """Whether all of it is shown, each message whole; and the share of its words that are, by runs of five."""
        shown = [self._words_of(reading) for reading in readings]
        whole = all(any(f" {turn} " in text for text in shown) for turn in evidence.turns)
        if whole:
            return True, 1.0
        wanted = {run for turn in evidence.turns for run in _runs(turn)}
        found = wanted.intersection(run for text in shown for run in _runs(text))
        return False, len(found) / max(len(wanted), 1)

    def _words_of(self, reading: Reading) -> str:
        if reading.digest not in self._words:
            self._words[reading.digest] = f" {words_of(reading.text)} "
        return self._words[reading.digest]

    def _note(self, measure: Measure, share: float) -> None:
        self._played.shown.setdefault(measure, []).append(share)

    def _fault(self, fault: str) -> None:
        if len(self._played.faults) < _FAULTS_KEPT:
            self._played.faults.append(fault[:200])


def _runs(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[at : at + _RUN_OF_WORDS]) for at in range(max(1, len(words) - _RUN_OF_WORDS + 1))}
