"""Reads annotated conversations: `{id, sessions: [{id, date, turns: [{id, speaker, text}]}], questions: [...]}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.conversations.dates import parse_date
from langchain_tiered_memory.conversations.nouns import Conversation, Question, Sitting, Turn
from langchain_tiered_memory.conversations.places import Located, fail
from langchain_tiered_memory.conversations.speaking import spoken
from langchain_tiered_memory.conversations.timing import place_in_time
from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable


def annotated_conversation(document: Located, *, name: str) -> Conversation:
    """The conversation of one document; `name` is its id where it has none.

    Raises:
        InvalidInputError: when the document is something else; the message says where.
    """
    sessions = document.at("sessions").items()
    rows = [session.at("turns").items() for session in sessions]
    starts = [_date(session, "date") for session in sessions]
    times = place_in_time(starts, [[_date(row, "date") for row in group] for group in rows])
    turns = tuple(
        _turn(row, at=moment, sitting=number)
        for number, (group, moments) in enumerate(zip(rows, times, strict=True))
        for row, moment in zip(group, moments, strict=True)
    )
    if not turns:
        fail(document.place, "the conversation has no turns")
    known = unique_ids((turn.id for turn in turns), document.place)
    sittings = tuple(
        Sitting(id=str(session.get("id") or number), date=_text_or_none(session.get("date")), at=start)
        for number, (session, start) in enumerate(zip(sessions, starts, strict=True))
    )
    questions = document.at("questions").items() if document.get("questions") else []
    return Conversation(
        id=str(document.get("id") or name),
        turns=turns,
        sittings=sittings,
        questions=tuple(question_of(row, number, known) for number, row in enumerate(questions)),
    )


def unique_ids(ids: Iterable[str], place: str) -> frozenset[str]:
    """The set of `ids`.

    Raises:
        InvalidInputError: when one comes twice.
    """
    known: set[str] = set()
    for turn_id in ids:
        if turn_id in known:
            fail(place, f"the id {turn_id!r} stands for two turns")
        known.add(turn_id)
    return frozenset(known)


def question_of(row: Located, number: int, known: frozenset[str]) -> Question:
    """One annotated question; cited turns that are not in `known` are unresolved.

    Raises:
        InvalidInputError: when it has no text, or its evidence is no list.
    """
    cited = [str(item.value) for item in row.at("evidence").items()]
    evidence = tuple(turn_id for turn_id in dict.fromkeys(cited) if turn_id in known)
    unresolved = [turn_id for turn_id in cited if turn_id not in known]
    named = row.get("unresolved_evidence")
    unresolved += [str(item) for item in named] if isinstance(named, list) else [str(named)] if named else []
    parts = [str(part) for part in (row.get("category"), row.get("category_name")) if part is not None]
    return Question(
        id=str(row.get("id") or f"q{number}"),
        text=row.text("q"),
        answer=_text_or_none(row.get("answer")),
        evidence=evidence,
        category=" ".join(parts) or "none",
        adversarial=bool(row.get("adversarial")) or row.get("category_name") == "adversarial",
        unresolved=tuple(dict.fromkeys(unresolved)),
    )


def _turn(row: Located, *, at: dt.datetime | None, sitting: int) -> Turn:
    turn_id, speaker, text = row.text("id"), row.text("speaker"), row.text("text")
    message = spoken(speaker, text, message_id=turn_id)
    return Turn(id=turn_id, speaker=speaker, text=text, message=message, at=at, sitting=sitting)


def _date(row: Located, key: str) -> dt.datetime | None:
    value = row.get(key)
    if value is None or value == "":
        return None
    try:
        return parse_date(value)
    except InvalidInputError as error:
        fail(f"{row.place} {key}", str(error))


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
