"""A LangChain message read into a draft: text, tokens, calls, passages. The way in, without the writing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.file_accesses import touches_of
from langchain_tiered_memory.decisions.message_text import answers_of, calls_of, role_of, text_of
from langchain_tiered_memory.decisions.messages import decode, encode
from langchain_tiered_memory.decisions.passages import split_passages
from langchain_tiered_memory.decisions.terms import analyse
from langchain_tiered_memory.drafts import Incoming
from langchain_tiered_memory.records import Draft, PassageDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.settings import FileSettings

_NOT_REDACTED = frozenset({"id", "type", "class", "v", "tool_call_id", "role", "index"})
"""Keys of a stored message that hold structure, not something said."""


def passage_drafts(text: str, *, max_words: int) -> tuple[PassageDraft, ...]:
    """`text` cut into passages for the indexes; pieces without a single term are left out."""
    found = []
    for part, span in enumerate(split_passages(text, max_words=max_words)):
        terms = analyse(text[span.start : span.stop])
        if terms:
            found.append(PassageDraft(part=part, start=span.start, stop=span.stop, terms=" ".join(terms)))
    return tuple(found)


def redacted(message: BaseMessage, redact: Callable[[str], str]) -> BaseMessage:
    """`message` with `redact` applied to every text in it: content, call arguments, artifact and metadata."""

    def walk(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return redact(value)
        if isinstance(value, list):
            return [walk(one) for one in value]
        if isinstance(value, dict):
            return {key: one if key in _NOT_REDACTED else walk(one) for key, one in value.items()}
        return value

    return decode(json.dumps(walk(json.loads(encode(message).payload))))


def draft_of(
    message: BaseMessage,
    *,
    counter: TokenCounter,
    message_id: str,
    at: float,
    track: str,
    kind: str | None,
    task: str | None,
    passage_words: int,
    files: FileSettings | None = None,
) -> tuple[Incoming, tuple[str, ...]]:
    """`message` as the transcript takes it, and what could not be kept of it.

    Its calls are searched for files where `files` is given.

    Raises:
        UnknownMessageError: for a type that LangChain does not define.
    """
    if message.id != message_id:
        message = message.model_copy(update={"id": message_id})
    encoded = encode(message)
    text = text_of(message)
    draft = Draft(
        id=message_id,
        role=role_of(message),
        text=text,
        payload=encoded.payload,
        digest=encoded.digest,
        tokens=counter.count_message(message),
        at=at,
        name=message.name or None,
        track=track,
        kind=kind,
        task=task,
        calls=calls_of(message),
        answers=answers_of(message),
        reported=_reported(message),
    )
    touches = touches_of(message, files) if files is not None else ()
    passages = passage_drafts(text, max_words=passage_words)
    return Incoming(draft=draft, passages=passages, touches=touches), encoded.problems


def _reported(message: BaseMessage) -> tuple[str, int] | None:
    usage = getattr(message, "usage_metadata", None)
    metadata = message.response_metadata
    model = metadata.get("model_name") or metadata.get("model")
    if not usage or not model:
        return None
    return str(model), int(usage.get("input_tokens") or 0)
