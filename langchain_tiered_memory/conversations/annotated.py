"""Reads conversations with annotated questions and conversations that are lists of messages.

An annotated one is `{id, sessions: [{id, date, turns: [{id, speaker, text}]}], questions: [...]}`; a list has
OpenAI-style dicts, LangChain's dicts, or lines of our own export.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.conversations.dates import parse_date, place_in_time, split_by_pauses
from langchain_tiered_memory.conversations.turns import (
    Conversation,
    Located,
    Question,
    Sitting,
    Turn,
    fail,
    message_of,
    speaker_of,
    spoken,
)
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.message_text import text_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Sequence

    from langchain_core.messages import BaseMessage

_TIME_KEYS = ("at", "timestamp", "created_at", "date")


def annotated_conversation(document: Located, *, name: str) -> Conversation:
    """The conversation of one document. `name` is its id if it has none."""
    sessions = document.at("sessions").items()
    rows = [session.at("turns").items() for session in sessions]
    starts = [_time_of(session, "date") for session in sessions]
    times = place_in_time(starts, [[_time_of(row, "date") for row in group] for group in rows])
    turns = [
        _turn(row, at=moment, sitting=number)
        for number, (group, moments) in enumerate(zip(rows, times, strict=True))
        for row, moment in zip(group, moments, strict=True)
    ]
    if not turns:
        fail(document.place, "the conversation has no turns")
    sittings = tuple(
        Sitting(id=str(session.get("id") or number), date=_text_or_none(session.get("date")), at=start)
        for number, (session, start) in enumerate(zip(sessions, starts, strict=True))
    )
    questions = document.at("questions") if document.get("questions") else None
    return _conversation(
        turns, document.place, id=str(document.get("id") or name), sittings=sittings, questions=questions
    )


def _conversation(turns: Sequence[Turn], place: str, *, questions: Located | None, **about: Any) -> Conversation:  # noqa: ANN401 - its fields
    """A conversation of turns with ids of their own, each on its track, and the questions about them."""
    counts = Counter((turn.id, turn.track) for turn in turns)
    for (turn_id, _), count in counts.items():
        if count > 1:
            fail(place, f"the id {turn_id!r} stands for two turns")
    known = {turn.id for turn in turns}
    asked = questions.items() if questions is not None else ()
    found = tuple(_question_of(row, number, known) for number, row in enumerate(asked))
    return Conversation(turns=tuple(turns), questions=found, **about)


def _question_of(row: Located, number: int, known: Collection[str]) -> Question:
    """One annotated question. Cited turns that are not in `known` are unresolved.

    Raises:
        InvalidInputError: if it has no text, or its evidence is not a list.
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


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def listed_conversation(
    rows: list[Located],
    *,
    name: str,
    questions: Located | None = None,
    title: str | None = None,
    keeps_times: bool = False,
) -> Conversation:
    """The conversation of a list of messages. Pauses of half an hour separate its sittings.

    With `keeps_times`, messages that all have a time keep it, whatever the times of others are.
    """
    if not rows:
        fail(name, "the list of messages is empty")
    times = [_time_of(row, *_TIME_KEYS) for row in rows]
    numbers = split_by_pauses(times)
    moments = times if keeps_times and all(times) else place_in_time([None], [times])[0]
    turns = [
        _turn_said(row, index=index, at=moment, sitting=number)
        for index, (row, moment, number) in enumerate(zip(rows, moments, numbers, strict=True))
    ]
    firsts = {turn.sitting: turn.at for turn in reversed(turns)}
    sittings = tuple(
        Sitting(id=str(number + 1), date=f"{began:%Y-%m-%d %H:%M}" if began else None, at=began)
        for number, began in sorted(firsts.items())
    )
    return _conversation(turns, name, id=name, sittings=sittings, questions=questions, title=title)


def _turn_said(row: Located, *, index: int, at: dt.datetime | None, sitting: int) -> Turn:
    message = _message(row)
    given = message.id or row.get("id")
    turn_id = str(given or f"m{index + 1}")
    if message.id != turn_id:
        message = message.model_copy(update={"id": turn_id})
    return Turn(
        id=turn_id,
        speaker=speaker_of(message),
        text=text_of(message),
        message=message,
        at=at,
        sitting=sitting,
        track=str(row.get("track") or "main"),
        kind=row.get("kind"),
        task=row.get("task"),
        pinned=bool(row.get("pinned")),
        is_numbered=not given,
    )


def _message(row: Located) -> BaseMessage:
    """The message of a row: the row itself, or its `message`, next to which it has a time and a place."""
    if not isinstance(row.value, dict):
        fail(row.place, f"expected a message, found {type(row.value).__name__}")
    inner: Any = row.value.get("message", row.value)
    if not isinstance(inner, dict):
        fail(row.place, f"expected `message` to be an object, found {type(inner).__name__}")
    if not {"role", "data", "fields"} & inner.keys():
        fail(row.place, "a message needs `role` and `content` (or LangChain's `type` and `data`)")
    try:
        return message_of(inner)
    except InvalidInputError as error:
        fail(row.place, str(error))


def _time_of(row: Located, *keys: str) -> dt.datetime | None:
    key = next((key for key in keys if row.get(key) not in (None, "")), None)
    if key is None:
        return None
    try:
        return parse_date(row.get(key))
    except InvalidInputError as error:
        fail(f"{row.place} {key}", str(error))
