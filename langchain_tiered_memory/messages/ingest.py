"""A LangChain message read into a draft: text, tokens, calls, passages. The way in, without the writing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode, digest_of_payload, encode, refuse_too_deep
from langchain_tiered_memory.messages.content_blocks import OPAQUE, bytes_in, compacts, is_data_url
from langchain_tiered_memory.messages.file_accesses import touches_of
from langchain_tiered_memory.messages.message_text import answers_of, calls_of, role_of, text_of
from langchain_tiered_memory.text.sentences import split_passages
from langchain_tiered_memory.text.tagged_json import TAG, with_tagged_texts
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.types.drafts import Incoming
from langchain_tiered_memory.types.records import Draft, PassageDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.settings import FileSettings

_STRUCTURE = frozenset({"id", "type", "tool_call_id", "role", "index"})
"""Keys of a message, a call or a content block that hold structure, not something said."""
_OWN_KEYS = frozenset({"args", "input", "arguments", "json", "artifact"})
"""Keys below which every key was chosen by a tool or a model: an `id` there may be anybody's."""


def passage_drafts(text: str) -> tuple[PassageDraft, ...]:
    """`text` cut into passages for the indexes; pieces without a single term are left out."""
    found = []
    for part, span in enumerate(split_passages(text)):
        terms = analyse(text[span.start : span.stop])
        if terms:
            found.append(PassageDraft(part=part, start=span.start, stop=span.stop, terms=" ".join(terms)))
    return tuple(found)


def redacted(message: BaseMessage, redact: Callable[[str], str]) -> BaseMessage:
    """`message` with `redact` applied to every text in it: content, call arguments, artifact and metadata."""
    return redacted_as_kept(message, redact, as_given=False)[0]


def redacted_as_kept(
    message: BaseMessage, redact: Callable[[str], str], *, as_given: bool
) -> tuple[BaseMessage, tuple[str, ...]]:
    """As `redacted`, with what could not be kept of it.

    Raises:
        InvalidInputError: with `as_given`, for a message with values nested too deeply to be kept as they are.
    """

    def walk(value: Any, kept: frozenset[str]) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return value if is_data_url(value) else redact(value)
        if isinstance(value, list):
            return [walk(one, kept) for one in value]
        if not isinstance(value, dict):
            return value
        if TAG in value:
            return with_tagged_texts(value, redact, lambda inside: walk(inside, frozenset()))
        passed = kept | bytes_in(value) if kept else kept
        return {
            key: one if key in passed else walk(one, frozenset() if key in _OWN_KEYS else kept)
            for key, one in value.items()
        }

    encoded = encode(message)
    if as_given:
        refuse_too_deep(message, encoded.too_deep)
    payload = json.loads(encoded.payload)
    kept = _STRUCTURE | OPAQUE if isinstance(message, AIMessage) else _STRUCTURE
    said = {part: walk(payload[part], kept) for part in ("fields", "extra") if part in payload}
    return decode(json.dumps(payload | said)), encoded.problems


def draft_of(
    message: BaseMessage,
    *,
    counter: TokenCounter,
    message_id: str,
    at: float,
    track: str,
    kind: str | None,
    task: str | None,
    files: FileSettings | None = None,
    as_given: bool = True,
) -> tuple[Incoming, tuple[str, ...]]:
    """`message` as the transcript takes it, and what could not be kept of it.

    Its calls are searched for files where `files` is given. What is nested too deeply is refused, or with
    `as_given=False` kept as a text of JSON.

    Raises:
        UnknownMessageError: for a type that LangChain does not define.
        InvalidInputError: for a message with values nested too deeply to be kept as they are.
    """
    if message.id != message_id:
        message = message.model_copy(update={"id": message_id})
    encoded = encode(message)
    problems = encoded.problems
    if encoded.too_deep:
        if as_given:
            refuse_too_deep(message, encoded.too_deep)
        message = decode(encoded.payload)
        encoded = encode(message)
    text = text_of(message)
    draft = Draft(
        id=message_id,
        role=role_of(message),
        text=text,
        payload=encoded.payload,
        digest=encoded.digest,
        tokens=counter.count_message(message),
        counter=counter.fingerprint,
        at=at,
        name=message.name or None,
        track=track,
        kind=kind,
        task=task,
        calls=calls_of(message),
        answers=answers_of(message),
        reported=reported_by(message),
    )
    touches = touches_of(message, files) if files is not None else ()
    passages = passage_drafts(text)
    return Incoming(draft=draft, passages=passages, touches=touches), problems


def derived_again(payload: str, *, counter: TokenCounter) -> Incoming | None:
    """What a stored message gives when it is read anew, without its place; `None` where it cannot be read."""
    try:
        message = decode(payload)
        place: dict[str, Any] = {"message_id": message.id or "", "at": 0.0, "track": "", "kind": None, "task": None}
        incoming, _ = draft_of(message, counter=counter, **place, as_given=False)
        # Not of the message that was made again: a process that has not loaded the class of an artifact cannot.
        digest = digest_of_payload(payload)
    except UnknownMessageError:
        return None
    return replace(incoming, draft=replace(incoming.draft, digest=digest))


def reported_by(message: BaseMessage) -> tuple[str, int] | None:
    """Which model an answer names, and the input tokens that it reports; `None` where it lacks either.

    What a provider reports of a request that it compacted is not the size of what it was sent.
    """
    usage = getattr(message, "usage_metadata", None)
    metadata = message.response_metadata
    model = metadata.get("model_name") or metadata.get("model")
    if not usage or not model or compacts(message):
        return None
    return str(model), int(usage.get("input_tokens") or 0)
