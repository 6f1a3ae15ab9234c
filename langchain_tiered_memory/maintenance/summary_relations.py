"""What summaries, facts and plans say of the messages they were made from, and of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.view.plan import ViewPlan, border_of_another_version
from langchain_tiered_memory.maintenance.remedies import Fault, Known, mend
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.rows import names_from_json
from langchain_tiered_memory.sql.schema import unpacked
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.rows import fact_of
from langchain_tiered_memory.summaries.facts.supersession import standing
from langchain_tiered_memory.types.records import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact


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
        yield from known.differing(
            summaries, row, right, kind="wrong_summary", what=row["id"], why="is not what its sources say"
        )


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


def border_in(plan: str) -> int | None:
    """The border in a plan's JSON; `None` where it cannot be read."""
    found = ViewPlan.from_json(plan)
    return found.border if found is not None else border_of_another_version(plan)


def of_plans(known: Known) -> Iterator[Fault]:
    """Faults in the borders of views' plans."""
    for row in known.rows(schema.plans):
        if border_in(row["payload"]) != row["border"]:
            detail = f"it cannot be read, or its border is not {row['border']}"
            yield known.fault("wrong_plan", row["name"], detail, mend(schema.plans, row, None))


def of_facts(known: Known) -> Iterator[Fault]:
    """Facts of no summary, facts whose standing does not follow from the others, and readings by nobody.

    Whether a summary's facts are what its messages state is looked at where they are read again. Of those that are yet
    to be read, they have to be from its messages.
    """
    summaries = list(known.rows(schema.summaries, "text", "facts"))
    owners = {row["id"] for row in summaries if row["level"] == 1 and row["state"] in FINISHED}
    under: dict[Any, set[int]] = {
        row["id"]: set() for row in summaries if row["id"] in owners and row["facts_read"] != READER_VERSION
    }
    for row in known.rows(schema.entries, "payload", "text") if under else ():
        if row["summary_id"] in under:
            under[row["summary_id"]].add(row["seq"])
    owned: list[Fact] = []
    for row in known.rows(schema.facts):
        fact, messages = fact_of(row), under.get(row["summary_id"])
        said_in = {fact.seq, *(() if fact.joins else fact.sources)}  # of what notes it joins, others stand above
        if row["summary_id"] in owners and (messages is None or said_in <= messages):
            owned.append(fact)
        else:
            detail = "there is no summary of the messages that it is said to be from"
            yield known.fault("orphan_fact", f"fact {row['id']}", detail, mend(schema.facts, row, None))
    yield from _of_standing(known, owned)
    for row in summaries:
        if row["facts_read"] > READER_VERSION:
            detail = f"its facts are said to have been read by version {row['facts_read']} of the reader"
            yield known.fault("wrong_reading", row["id"], detail, mend(schema.summaries, row, {"facts_read": 0}))


def _of_standing(known: Known, facts: Sequence[Fact]) -> Iterator[Fault]:
    right_of = standing(facts)
    for fact in facts:
        right = dict(zip(("status", "superseded_by"), right_of[fact.id], strict=True))
        row = {"session_key": known.session["key"], "id": fact.id}
        row |= {"status": fact.status, "superseded_by": fact.superseded_by}
        why = "is not what follows from the other facts"
        yield from known.differing(schema.facts, row, right, kind="wrong_standing", what=f"fact {fact.id}", why=why)
