"""Sheets of messages, summaries, facts, hits and trees."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from langchain_tiered_memory.display.sheet import (
    Cell,
    Node,
    Sheet,
    Tree,
    Words,
    brief,
    moment,
    number,
    percent,
    plural,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.reports import DoctorReport, MemoryStatus, Receipt, SessionMetrics, VerifyReport
    from langchain_tiered_memory.types.records import Entry, Fact, Hit, Summary, SummaryTree

_LINE = 60
_CELL = 200


def entry(one: Entry) -> Sheet:
    """A message with its place."""
    about = f"{one.seq}, {_who(one.role, one.name)}: {brief(one.text, _LINE)!r}"
    notes = (f"{moment(one.at)} UTC, {one.tokens:,} tokens, track {one.track}, id {one.id}",)
    return Sheet(about=about, notes=notes, blocks=(Words(text=one.text),))


def summary(one: Summary) -> Sheet:
    """A summary with what it covers and its state."""
    saved = percent(_saved([one]) if one.tokens else 0.0)
    sizes = f"{one.tokens:,} of {one.source_tokens:,} tokens, {saved} saved"
    note = f": {one.verdict_note}" if one.verdict_note else ""
    judged = [f"a person called it {one.verdict}{note}"] if one.verdict else []
    return Sheet(
        about=f"level {one.level}, messages {one.first_seq}-{one.last_seq}, {one.state}",
        notes=(f"{sizes}; written by {one.model or 'nobody yet'}{_flaws(one)}", *judged),
        blocks=(Words(text=one.text),) if one.text else (),
    )


def _flaws(one: Summary) -> str:
    found = [name for name, is_so in (("degraded", one.degraded), ("stale", one.stale)) if is_so]
    return "".join(f", {name}" for name in (*found, *([one.error] if one.error else [])))


def tree(one: SummaryTree) -> Sheet:
    """Every level from the top down to the messages' numbers: states, spans, ratios."""
    rows = [
        (
            f"level {level}",
            len(found),
            sum(item.source_tokens for item in found),
            sum(item.tokens for item in found),
            percent(_saved(found)),
            ", ".join(f"{count} {state}" for state, count in Counter(one.state.value for one in found).items()),
        )
        for level, found in ((level, one.level(level)) for level in range(1, one.height + 1))
    ]
    below: dict[str, list[Summary]] = {}
    for item in one.summaries:
        if item.parent_id is not None:
            below.setdefault(item.parent_id, []).append(item)
    columns = ("", "summaries", "of tokens", "in tokens", "saved", "states")
    raw = f", {plural(one.raw_messages, 'message')} not condensed yet" if one.raw_messages else ""
    return Sheet(
        about=f"{one.session_id!r}: {plural(len(one.summaries), 'summary')} over {one.messages:,} messages{raw}",
        blocks=(
            table("levels", columns, rows),
            Tree(caption="from the top", nodes=tuple(_node(root, below) for root in one.roots)),
        )
        if one.summaries
        else (),
    )


def _node(one: Summary, all_below: dict[str, list[Summary]]) -> Node:
    below = all_below.get(one.id, [])
    count = plural(len(below), "summary") if below else plural(one.entry_count, "message")
    state = "" if one.state.finished else f", {one.state}"
    return Node(
        label=f"level {one.level}, messages {one.first_seq}-{one.last_seq}",
        detail=f"{count}, {one.source_tokens:,} to {one.tokens:,} tokens{state}{_flaws(one)}",
        text=one.text,
        children=tuple(_node(child, all_below) for child in below),
    )


def _saved(found: Sequence[Summary]) -> float:
    sources = sum(one.source_tokens for one in found)
    return 1 - sum(one.tokens for one in found) / sources if sources else 0.0


def fact(one: Fact) -> Sheet:
    """A statement, who made it and where."""
    replaced = ", replaced" if one.status == "superseded" else ""
    notes = (f"said by {_who(one.by, one.speaker)} in message {_messages_of(one)}, {moment(one.at)} UTC",)
    about = f"{one.kind}{replaced}: {brief(one.text, _LINE)!r}"
    return Sheet(about=about, notes=notes, blocks=(Words(text=one.text),))


def facts(found: Sequence[Fact]) -> Sheet:
    """Statements with their sources."""
    rows = [
        (
            brief(one.text, _CELL) + (" (replaced)" if one.status == "superseded" else ""),
            one.kind,
            _who(one.by, one.speaker),
            _messages_of(one),
        )
        for one in found
    ]
    return Sheet(
        about=plural(len(found), "statement"),
        blocks=(table("what was stated", ("statement", "kind", "by", "messages"), rows),) if found else (),
    )


def _messages_of(one: Fact) -> str:
    return ", ".join(map(str, one.sources or (one.seq,)))


def hit(one: Hit) -> Sheet:
    """What a search found, and where."""
    where = f"message {one.seq}" if one.level == 0 else f"level {one.level}, up to message {one.seq}"
    notes = (f"score {number(one.score)}, {moment(one.at)} UTC, id {one.id}",)
    about = f"{where}: {brief(one.passage, _LINE)!r}"
    return Sheet(about=about, notes=notes, blocks=(Words(text=one.passage),))


def hits(found: Sequence[Hit]) -> Sheet:
    """What a search found, best first."""
    rows = [
        (
            f"message {one.seq}" if one.level == 0 else f"level {one.level}",
            one.score,
            _who(one.role or "summary", one.name),
            brief(one.passage, _CELL),
        )
        for one in found
    ]
    return Sheet(
        about=f"{len(found)} found",
        blocks=(table("best first", ("where", "score", "by", "passage"), rows),) if found else (),
    )


def detail(found: Sequence[Summary | Entry]) -> Sheet:
    """What a summary stands for."""
    rows: list[tuple[Cell, ...]] = []
    for one in found:
        if hasattr(one, "level"):
            above = cast("Summary", one)
            place: tuple[str, str] = (f"{above.first_seq}-{above.last_seq}", f"level {above.level}")
        else:
            place = (str(one.seq), _who(one.role, one.name))
        rows.append((*place, one.tokens, brief(one.text, _CELL)))
    blocks = (table("in their order", ("messages", "by", "tokens", "text"), rows),) if rows else ()
    return Sheet(about=f"{len(found)} below it", blocks=blocks)


def _who(role: str, name: str | None) -> str:
    return f"{name} ({role})" if name else role


def metrics(one: SessionMetrics) -> Sheet:
    """A session in figures."""
    rows = [
        (f"level {level.level}", level.summaries, level.source_tokens, level.tokens, percent(level.ratio))
        for level in one.levels
    ]
    calls = f"{plural(one.spent.calls, 'model call')}, {one.spent.input_tokens:,} tokens read"
    money = f", {number(one.cost)} in money" if one.cost is not None else ""
    notes = [f"condensing took {calls}, {one.spent.output_tokens:,} written{money}"]
    if one.kept_identifiers is not None:
        notes.append(f"level 1 still states {percent(one.kept_identifiers)} of identifiers, figures and paths")
    counts = ((one.failed, "failed"), (one.degraded, "degraded"), (one.stale, "stale"))
    flaws = ", ".join(f"{count} {name}" for count, name in counts if count)
    notes += [flaws] if flaws else []
    notes += [
        f"level {one.level} by {one.writer}: {one.good} called good, {one.wrong} wrong, {one.incomplete} incomplete"
        for one in one.ratings
    ]
    return Sheet(
        about=f"{one.session_id!r}: {plural(one.messages, 'message')}, {one.tokens:,} tokens; the highest "
        f"summaries save {percent(one.overall_ratio)} of them",
        notes=tuple(notes),
        blocks=(table("summaries", ("", "summaries", "of tokens", "in tokens", "saved"), rows),) if rows else (),
    )


def receipt(one: Receipt) -> Sheet:
    """What was removed, and where bytes of it may remain."""
    rows = [
        ("messages", one.entries),
        ("earlier revisions", one.revisions),
        ("summaries above them", one.summaries),
        ("passages of the text index", one.passages),
        ("vectors", one.vectors),
        *((what, getattr(one, what)) for what in ("facts", "files", "checkpoints", "items", "threads")),
    ]
    remains = tuple(f"may remain: {place}" for place in one.may_remain)
    return Sheet(
        about=f"{plural(one.entries, 'message')} of {', '.join(map(repr, one.session_ids)) or 'no session'} forgotten, "
        f"{'nothing remains' if not remains else plural(len(remains), 'place') + ' where something may remain'}",
        notes=remains,
        blocks=(table("what was removed", ("", "removed"), rows),),
    )


def doctor_report(one: DoctorReport) -> Sheet:
    """What was wrong, and what was repaired."""
    states = ((one.mended, "mended"), (one.left, "still wrong"))
    rows = [(problem.kind, problem.what, problem.detail, state) for problems, state in states for problem in problems]
    return Sheet(
        about=f"{plural(len(one.found), 'problem')} found, {len(one.mended)} repaired, {len(one.left)} left",
        notes=one.notes,
        blocks=(table("problems", ("kind", "where", "what", "now"), rows),) if rows else (),
    )


def status(one: MemoryStatus) -> Sheet:
    """What a memory consists of on this machine, and what is missing."""
    vectors = f"{one.vectors:,} vectors in {one.chroma}" if one.chroma else f"{one.vectors:,} vectors"
    by = f"words and meaning ({one.embedder}, {vectors})" if one.embedder else "words alone"
    return Sheet(
        about=f"{one.database}, {plural(one.sessions, 'session')}",
        notes=(
            f"searches {plural(one.passages, 'passage')} by {by}",
            f"counts with {one.counter}{' (an estimate)' if one.counts_are_estimates else ''}",
            *one.gaps,
        ),
        blocks=(table("versions", ("package", "version"), list(one.versions.items())),),
    )


def verify_report(one: VerifyReport) -> Sheet:
    """What was checked, and what is wrong."""
    nouns = ("session", "message", "summary", "passage", "vector")
    counts = (one.sessions, one.entries, one.summaries, one.passages, one.vectors)
    looked = ", ".join(plural(count, noun) for count, noun in zip(counts, nouns, strict=True))
    rows = [(problem.kind, problem.what, problem.detail) for problem in one.problems]
    return Sheet(
        about=f"{'all is well' if one.healthy else plural(len(rows), 'problem')}: {looked}",
        notes=one.notes,
        blocks=(table("problems", ("kind", "where", "what"), rows),) if rows else (),
    )
