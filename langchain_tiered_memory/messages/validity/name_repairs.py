r"""Mends the names that messages carry, so that every provider takes them; the transcript keeps what was given.

OpenAI refuses a request with a name that has a space or one of `< | \\ / >` in it, or more than 64 characters.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from langchain_core.messages import ToolMessage

from langchain_tiered_memory.messages.validity.call_forms import valid_tool_name

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_REFUSED = re.compile(r"[\s<|\\/>\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ud800-\udfff\ufeff]+")
_MAX_CHARS = 64
_MARK_CHARS = 6
"""Of a digest, behind a name that would read like another's."""


class SentNames:
    """Valid names for one request's messages, kept distinct where two would become the same.

    Names are given in the order of the messages, so those of a request that only grew stay as they were.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def with_valid_name(self, message: BaseMessage) -> tuple[BaseMessage, str | None]:
        """`message` with a name that every provider takes, or without one, and what was changed."""
        given = message.name
        if given is None:
            return message, None
        if isinstance(message, ToolMessage):
            # Google matches it with the name of the call, which is mended alike.
            sent: str | None = valid_tool_name(given)
        else:
            sent = self._of(given)
        if sent == given:
            return message, None
        became = f"it goes out as {sent!r}" if sent else "it goes out without"
        return message.model_copy(update={"name": sent}), (
            f"had the name {given[:_MAX_CHARS]!r}, which not every provider takes; {became}"
        )

    def _of(self, given: str) -> str | None:
        plain = _REFUSED.sub("_", given[: 4 * _MAX_CHARS]).strip("_") if _REFUSED.search(given) else given
        plain = plain[:_MAX_CHARS].rstrip("_") if len(plain) > _MAX_CHARS else plain
        if not plain:
            return None
        if self._sent.setdefault(plain, given) == given:
            return plain
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_CHARS]
        marked = f"{plain[: _MAX_CHARS - _MARK_CHARS - 1]}-{digest}"
        self._sent.setdefault(marked, given)
        return marked
