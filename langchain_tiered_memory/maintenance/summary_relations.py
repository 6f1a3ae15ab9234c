"""What index rows, summaries, facts and plans say of the messages they were made from, and of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.maintenance.remedies import Fault, Known, mend
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.rows import names_from_json
from langchain_tiered_memory.sql.schema import unpacked
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.rows import fact_of
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.transcript.summary_reads import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact


def of_passages(known: Known) -> Iterator[Fault]:
    """Of the place, the time and the kind of index rows."""
    passages = schema.passages
    owners: dict[Any, dict[str, Any]] = {}
    for row in known.rows(schema.entries, "payload", "text"):
        owners[row["seq"]] = {name: row[name] for name in ("track", "kind", "at")}
    for row in known.rows(schema.summaries, "text", "facts"):
        owners[row["id"]] = {"track": row["track"] or "", "kind": "summary", "at": row["last_at"]}
        owners[row["id"]] |= {"level": row["level"], "seq": row["last_seq"]}
    for row in known.rows(passages):
        owner = owners.get(row["seq"] if row["level"] == 0 else row["summary_id"])
        if owner is None:
            continue  # an orphan, or its owner is damaged: both are named
        right = owner | {"scope": schema.scope_of(row["session_key"], owner.get("level", 0))}
        if any(row[name] != value for name, value in right.items()):
            detail = "it is not where, when and of what kind its owner is"
            # Rows of the text index are made anew: on SQLite nothing else brings the index itself up to date.
            yield known.fault("wrong_index_row", row["id"], detail, mend(passages, row, None))


def of_summaries(known: Known) -> Iterator[Fault]:
    """Of what follows from a summary's sources."""
    summaries = schema.summaries
    messages: dict[Any, dict[str, dict[str, Any]]] = {}
    for row in known.rows(schema.entries, "payload", "text"):
        messages.setdefault(row["track"], {})[unpacked(row["message_id"])] = row
    there = {row["id"]: row for row in known.rows(summaries, "text", "facts")}
    for row in there.values():
        names = names_from_json(row["sources"])
        of_track = _messages_of(row, names, messages)
        is_first = of_track is not None
        covered = there if of_track is None else of_track
        sources = [covered[one] for one in names if one in covered]
        if not sources or len(sources) != len(names):
            continue  # named as wrong coverage
        right = _of_sources(sources, is_first=is_first)
        if row["stale"]:
            del right["from_tools"]  # it says so of its sources before they were edited
        if row["state"] in _UNFINISHED:
            right.pop("from_tools", None)  # known when it is written
            if row["retry_at"] is None:
                right["retry_at"] = 0.0
        wrong = {name: value for name, value in right.items() if row[name] != value}
        if wrong:
            detail = f"its {', '.join(wrong)} is not what its sources say"
            yield known.fault("wrong_summary", row["id"], detail, mend(summaries, row, wrong))


def _messages_of(
    row: Mapping[str, Any], names: Sequence[str], tracks: Mapping[Any, dict[str, dict[str, Any]]]
) -> dict[str, dict[str, Any]] | None:
    """The messages of the track that has all these names: of several the one whose messages name the summary.

    Ids are unique per track alone, and the summary's own word for its track may be what was damaged.
    """
    found = [(track, messages) for track, messages in tracks.items() if all(one in messages for one in names)]

    def speaks_for(one: tuple[Any, dict[str, dict[str, Any]]]) -> tuple[int, bool]:
        track, messages = one
        return sum(messages[name]["summary_id"] == row["id"] for name in names), track == row["track"]

    return max(found, key=speaks_for)[1] if found else None


_UNFINISHED = ("pending", "generating", "failed")


def _of_sources(sources: Sequence[Mapping[str, Any]], *, is_first: bool) -> dict[str, Any]:
    """The columns of a summary that follow from what it covers."""
    first, last = ("seq", "seq") if is_first else ("first_seq", "last_seq")
    since, until = ("at", "at") if is_first else ("first_at", "last_at")
    return {
        "level": 1 if is_first else sources[0]["level"] + 1,
        "track": sources[0]["track"] if is_first else None,
        "first_seq": min(one[first] for one in sources),
        "last_seq": max(one[last] for one in sources),
        "first_at": min(one[since] for one in sources),
        "last_at": max(one[until] for one in sources),
        "entry_count": len(sources) if is_first else sum(one["entry_count"] for one in sources),
        "from_tools": any(one["role"] == "tool" if is_first else one["from_tools"] for one in sources),
    }


def of_plans(known: Known, plan_border: Callable[[str], int | None]) -> Iterator[Fault]:
    """Faults in the borders of views' plans; `plan_border` reads one from JSON, `None` where it cannot."""
    for row in known.rows(schema.plans):
        border = plan_border(row["payload"])
        if border is None:
            detail = "the plan of a view cannot be read"
            yield known.fault("damaged_plan", row["name"], detail, mend(schema.plans, row, None))
        elif border != row["border"]:
            detail = f"its border is {border}, and {row['border']} noted"
            yield known.fault("wrong_plan", row["name"], detail, mend(schema.plans, row, None))


def of_facts(known: Known) -> Iterator[Fault]:
    """Facts of no summary, facts whose standing does not follow from the others, and readings by nobody."""
    found = list(known.rows(schema.facts))
    owned = {row["id"] for row in found} - set(_orphans(known, found))
    for row in found:
        if row["id"] not in owned:
            detail = "the messages that it is said to be from are not under its summary"
            yield known.fault("orphan_fact", f"fact {row['id']}", detail, mend(schema.facts, row, None))
    facts = [fact_of(row) for row in found if row["id"] in owned]
    yield from _of_standing(known, facts)
    for row in known.rows(schema.summaries, "text", "facts"):
        if row["facts_read"] > READER_VERSION:
            detail = f"its facts are said to have been read by version {row['facts_read']} of the reader"
            yield known.fault("wrong_reading", row["id"], detail, mend(schema.summaries, row, {"facts_read": 0}))


def _orphans(known: Known, found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Ids of facts that do not stand under a finished level-1 summary with all their messages."""
    under: dict[Any, set[int]] = {}
    for row in known.rows(schema.entries, "payload", "text"):
        under.setdefault(row["summary_id"], set()).add(row["seq"])
    owners = {
        row["id"]
        for row in known.rows(schema.summaries, "text", "facts")
        if row["level"] == 1 and row["state"] in FINISHED
    }
    for row in found:
        fact = fact_of(row)
        if row["summary_id"] not in owners or not {fact.seq, *fact.sources} <= under.get(row["summary_id"], set()):
            yield fact.id


def _of_standing(known: Known, facts: Sequence[Fact]) -> Iterator[Fault]:
    gone = superseded(facts)
    for fact in facts:
        right = {"status": "superseded" if fact.id in gone else "active", "superseded_by": gone.get(fact.id)}
        if {"status": fact.status, "superseded_by": fact.superseded_by} != right:
            detail = f"it is {fact.status}, and by the other facts {right['status']}"
            mine = {"session_key": known.session["key"], "id": fact.id}
            yield known.fault("wrong_standing", f"fact {fact.id}", detail, mend(schema.facts, mine, right))
