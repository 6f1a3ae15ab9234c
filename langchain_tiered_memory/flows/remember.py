"""A message comes in: read, counted and cut once, then written in one transaction. Durable when it returns."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.calibration import Calibration
from langchain_tiered_memory.decisions.drafting import draft_of, redacted
from langchain_tiered_memory.decisions.messages import coerce
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.tasks import current_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.drafts import Appended, Incoming
    from langchain_tiered_memory.flows.house import House

When = dt.datetime | float
"""A moment: a `datetime` (naive ones are taken as UTC) or seconds since the epoch."""


_EARLIEST = dt.datetime(1, 1, 2, tzinfo=dt.UTC).timestamp()
_LATEST = dt.datetime(9999, 12, 30, tzinfo=dt.UTC).timestamp()


def remember(
    house: House,
    session_id: str,
    messages: Sequence[object],
    *,
    user: str | None,
    title: str | None,
    track: str,
    at: When | Sequence[When] | None,
    kind: str | None,
    task: str | None,
    sent_tokens: int | None,
) -> Flow[tuple[list[str], Appended | None]]:
    """Write messages and give their ids.

    Args:
        house: The memory.
        session_id: Which session; it is made when it does not exist.
        messages: LangChain messages, or what `convert_to_messages` takes.
        user: Whose session it is.
        title: What it is about.
        track: Which line of the session.
        at: When they were said; one moment for all, or one for each. Now, if not given.
        kind: What they are, such as `acceptance_criteria`; free text.
        task: The task they belong to; the one that was started last on this track, if not given.
        sent_tokens: Raw tokens of the request that the last message answers, where known: teaches the calibration.

    Raises:
        InvalidInputError: for a message, time or session id that cannot be taken; nothing was written.
        StorageError: when the database cannot take them; nothing was written.
    """
    files = house.settings.files if house.settings.files.enabled else None
    if task is None:
        task = yield from current_task(house, session_id, track)
    incoming: list[Incoming] = []
    for value, moment in zip(messages, _moments(at, len(messages), house.now()), strict=True):
        message = coerce(value)
        if house.settings.redact is not None:
            message = redacted(message, house.settings.redact)
        item, problems = draft_of(
            message,
            counter=house.counter,
            message_id=message.id or uuid.uuid4().hex,
            at=moment,
            track=track,
            kind=kind,
            task=task,
            passage_words=house.settings.recall.passage_words,
            files=files,
        )
        for problem in problems:
            house.report("artifact_not_kept", problem, session_id=session_id, message_id=item.draft.id)
        incoming.append(item)
    if not incoming:
        return [], None
    appended = yield from do(
        house.store.transcript.append, session_id, incoming, user=user, title=title, now=house.now()
    )
    yield from _calibrate(house, incoming, sent_tokens)
    return [item.draft.id for item in incoming], appended


def _moments(at: When | Sequence[When] | None, count: int, now: float) -> list[float]:
    if at is None:
        return [now] * count
    if isinstance(at, dt.datetime | float | int | str):
        return [_seconds(at)] * count
    moments = [_seconds(one) for one in at]
    if len(moments) != count:
        msg = f"{len(moments)} times were given for {count} messages: give one for all, or one for each"
        raise InvalidInputError(msg)
    return moments


def _seconds(moment: object) -> float:
    if isinstance(moment, dt.datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
        return aware.timestamp()
    if isinstance(moment, float | int) and not isinstance(moment, bool) and _EARLIEST <= moment <= _LATEST:
        return float(moment)
    msg = f"{moment!r} is no time: give a datetime, or seconds since the epoch"
    raise InvalidInputError(msg)


def _calibrate(house: House, incoming: Sequence[Incoming], sent_tokens: int | None) -> Flow[None]:
    reported = incoming[-1].draft.reported
    if sent_tokens is None or reported is None or not reported[1]:
        return
    model, billed = reported
    counter = house.counter.fingerprint
    known = yield from do(house.store.plans.calibration, model, counter)
    before = Calibration(ratio=known[0], samples=known[1]) if known is not None else Calibration()
    after = before.observe(sent_tokens, billed)
    if after != before:
        yield from do(house.store.plans.set_calibration, model, counter, ratio=after.ratio, samples=after.samples)
