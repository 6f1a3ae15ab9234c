"""What a message brings with it, made harmless before it stands in a text of ours: the one place that does so.

Old texts stand in our prompts between tags, with labels before them. Two things could leave that place: a text that
looks like one of our tags, and a label (a name, an id, a path) with a line or a tag of its own. Texts go through
`neutralised`, or `neutralised_part` for the prompts of condensing models; labels through `plain_label`, `plain_name`
or `short_id`. All are idempotent, and leave alone what nobody could take for something else. What a condensing model
answers goes through `as_said`: only what is read is changed, what is kept says what was said.
"""

from __future__ import annotations

import re
import unicodedata

HISTORY_TAG = "conversation_history"
RECALL_TAG = "recalled"
STATE_TAG = "agent_state"
"""Tags that a model sees in a context."""
PROMPT_TAGS = ("session", "kept", "part", "summary", "stretch", "m", "earlier", "again")
"""Tags of the prompts for condensing."""

_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_GAP = rf"[\s{_UNSEEN}]*+"
_FULL_WIDTH = 0xFEE0
"""From an ASCII character to its full-width form."""

_OPENINGS = "[<\uff1c\u2039\u3008\u27e8\ufe64]"
_HARMLESS = "\u02c2"  # reads like `<`, closes nothing


def _lookalike(*tags: str, opening: str = _OPENINGS) -> re.Pattern[str]:
    """The opening bracket of what reads as one of `tags`, opening or closing, however it is spaced or spelt."""
    spelt = "|".join(
        f"[{_UNSEEN}]*+".join(f"[{char}{chr(ord(char) + _FULL_WIDTH)}{' -' if char == '_' else ''}]" for char in tag)
        for tag in tags
    )
    return re.compile(rf"{opening}(?={_GAP}(?:[/\uff0f\u2215\u2044]{_GAP})?(?:{spelt})(?!\w))", re.IGNORECASE)


_OURS_IN_VIEWS = _lookalike(HISTORY_TAG, RECALL_TAG, STATE_TAG)
_OURS_IN_PROMPTS = _lookalike(*PROMPT_TAGS)
_CHANGED_IN_PROMPTS = _lookalike(*PROMPT_TAGS, opening=_HARMLESS)
_CHANGED_IN_VIEWS = _lookalike(HISTORY_TAG, RECALL_TAG, STATE_TAG, opening=rf"(?P<bracket>{_OPENINGS})\\")
_FIRST_WORD = re.compile(r"\w+")
_BRACKETS = str.maketrans({
    **dict.fromkeys("<>\uff1c\uff1e\u2039\u203a\u3008\u3009\u27e8\u27e9\ufe64\ufe65", " "),
    "[": "(", "]": ")", '"': "'", "`": "'",
})  # fmt: skip
_PLAIN_PATH = re.compile(r"(?:[\w./@+~=,:-]|(?<=/)\[{1,2}(?:\.{3})?[\w-]+\]{1,2}(?=[/.]))+", re.ASCII)
"""Nothing in it is changed by `plain_label`, and most labels are such; a folder may be called `[id]`."""
_NO_ID = re.compile(r"[^\w.:@/+=~-]")
_ROLES = frozenset({"user", "human", "assistant", "ai", "system", "developer", "tool", "function"})
MAX_NAME_CHARS = 80
_MAX_LABEL_CHARS = 1000
ID_CHARS = 12
"""Enough of an id for `expand` and `pin`, which know it by its beginning."""
_LEAST_ID_CHARS = 4


def neutralised(text: str) -> str:
    """`text` without anything that could be taken for the end or start of our fences: a backslash breaks it."""
    return _OURS_IN_VIEWS.sub(r"\g<0>\\", text)


def neutralised_part(text: str) -> str:
    """As `neutralised`, for the tags of the prompts that condensing models are given: another character breaks it."""
    return _OURS_IN_PROMPTS.sub(_HARMLESS, neutralised(text))


def as_said(answer: str) -> str:
    """What a model answered to a prompt with neutralised texts, as these were said before that."""
    return _CHANGED_IN_VIEWS.sub(r"\g<bracket>", _CHANGED_IN_PROMPTS.sub("<", answer))


def plain_label(text: str, *, max_chars: int = _MAX_LABEL_CHARS) -> str:
    """A path, a title or another label on one line, without brackets, quotes and what is not seen."""
    if len(text) <= max_chars and (text.isalnum() or _PLAIN_PATH.fullmatch(text)):
        return text
    # What comes behind the part that is looked at is never shown, however long it is.
    shown = (" " if _is_unseen(char) else char for char in text[: 2 * max_chars].translate(_BRACKETS))
    return " ".join("".join(shown).split())[:max_chars].rstrip()


def plain_name(name: str | None, role: str = "") -> str:
    """A speaker's or a tool's name as a label: without a colon, and with the role behind one that claims another.

    A label of ours begins with a role, so a name claims one that begins with it: "assistant Claude" of a user.
    """
    said = " ".join(plain_label(name or "", max_chars=MAX_NAME_CHARS).replace(":", " ").replace("\uff1a", " ").split())
    first = _FIRST_WORD.search(said) if role else None
    claims = first is not None and first[0].casefold() in _ROLES and first[0].casefold() != role
    return f"{said} ({role})" if claims and not said.endswith(f" ({role})") else said


def short_id(identity: str, *, max_chars: int = ID_CHARS) -> str:
    """The beginning of an id by which `expand` and `pin` find it: up to the first character that is odd in one."""
    odd = _NO_ID.search(identity, 0, max_chars)
    if odd is None:
        return identity[:max_chars]
    return identity[: odd.start()] if odd.start() >= _LEAST_ID_CHARS else plain_label(identity, max_chars=max_chars)


def _is_unseen(char: str) -> bool:
    return not char.isprintable() and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
