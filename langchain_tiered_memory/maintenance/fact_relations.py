"""What facts say of the summaries that they were read for, and of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.maintenance.remedies import Fault, Remedy
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.rows import fact_of
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.transcript.summary_reads import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.maintenance.known_rows import Known
    from langchain_tiered_memory.types.records import Fact


def of_facts(known: Known) -> Iterator[Fault]:
    """Facts of no summary, facts whose standing does not follow from the others, and readings by nobody."""
    found = list(known.rows(schema.facts))
    owned = {row["id"] for row in found} - set(_orphans(known, found))
    for row in found:
        if row["id"] not in owned:
            detail = "the messages that it is said to be from are not under its summary"
            yield known.fault("orphan_fact", f"fact {row['id']}", detail, Remedy(schema.facts, _key(row), None))
    facts = [fact_of(row) for row in found if row["id"] in owned]
    yield from _of_standing(known, facts)
    for row in known.rows(schema.summaries, "text", "facts"):
        if row["facts_read"] > READER_VERSION:
            detail = f"its facts are said to have been read by version {row['facts_read']} of the reader"
            yield known.fault(
                "wrong_reading", row["id"], detail, Remedy(schema.summaries, {"id": row["id"]}, {"facts_read": 0})
            )


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
            remedy = Remedy(schema.facts, {"session_key": known.session["key"], "id": fact.id}, right)
            yield known.fault("wrong_standing", f"fact {fact.id}", detail, remedy)


def _key(row: dict[str, Any]) -> dict[str, Any]:
    return {"session_key": row["session_key"], "id": row["id"]}
