"""Reads conversations that are lists of messages: OpenAI-style dicts, LangChain's dicts, or lines of our own export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.conversations.annotated import question_of, unique_ids
from langchain_tiered_memory.conversations.dates import parse_date
from langchain_tiered_memory.conversations.nouns import Conversation, Sitting, Turn
from langchain_tiered_memory.conversations.places import Located, fail
from langchain_tiered_memory.conversations.speaking import message_of, speaker_of
from langchain_tiered_memory.conversations.timing import place_in_time, split_by_pauses
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.codec import text_of

if TYPE_CHECKING:
    import datetime as dt

    from langchain_core.messages import BaseMessage

_TIME_KEYS = ("at", "timestamp", "created_at", "date")


def listed_conversation(rows: list[Located], *, name: str, questions: Located | None) -> Conversation:
    """The conversation of a list of messages; pauses of half an hour part its sittings.

    Raises:
        InvalidInputError: when a row is no message, an id comes twice, or a question is malformed.
    """
    if not rows:
        fail(name, "the list of messages is empty")
    times = [_time_of(row) for row in rows]
    numbers = split_by_pauses(times)
    moments = place_in_time([None], [times])[0]
    turns = tuple(
        _turn(row, index=index, at=moment, sitting=number)
        for index, (row, moment, number) in enumerate(zip(rows, moments, numbers, strict=True))
    )
    known = unique_ids((turn.id for turn in turns), name)
    asked = questions.items() if questions else []
    return Conversation(
        id=name,
        turns=turns,
        sittings=tuple(_sitting(number, turns, numbers) for number in range(numbers[-1] + 1)),
        questions=tuple(question_of(row, number, known) for number, row in enumerate(asked)),
    )


def _sitting(number: int, turns: tuple[Turn, ...], numbers: list[int]) -> Sitting:
    began = turns[numbers.index(number)].at
    return Sitting(id=str(number + 1), date=f"{began:%Y-%m-%d %H:%M}" if began else None, at=began)


def _turn(row: Located, *, index: int, at: dt.datetime | None, sitting: int) -> Turn:
    message = _message(row)
    turn_id = str(message.id or row.get("id") or f"m{index + 1}")
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
    )


def _message(row: Located) -> BaseMessage:
    """The message of a row, which either is one or carries it in `message` beside its time and place."""
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


def _time_of(row: Located) -> dt.datetime | None:
    value = next((found for key in _TIME_KEYS if (found := row.get(key)) not in (None, "")), None)
    if value is None:
        return None
    try:
        return parse_date(value)
    except InvalidInputError as error:
        fail(row.place, str(error))
