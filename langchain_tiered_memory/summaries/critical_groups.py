"""Critical groups, which no sliding window may pass: constraints, decisions, unresolved errors, things to remember.

Recognised by form and by the wording that `cues` knows. Precise rather than broad: what is marked stays in every view,
so each false mark costs room in all of them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.message_text import is_marked_error
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.readings import READ_CHARS
from langchain_tiered_memory.text.sentences import asks, sentences
from langchain_tiered_memory.text.truncation import ends_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Entry, Group

_MAX_SENTENCE_CHARS = 600  # a longer one is pasted text: nobody decided anything in it
_EDGE_CHARS = 4_000  # of a tool's output, at each end, in which an error says that it is one

REMEMBER = re.compile(
    r"^(?:please |and |but |also |so |ok(?:ay)?,? |oh,? |hey,? |btw,? |by the way,? |important:? |just )*"
    r"(?:(?:always )?remember (?:that|to|this|these|my|our|the|i|we|it's)\b|remember:|(?:keep|bear) in mind\b|(?:do not"
    r"|don['\u2019]t) (?:ever )?forget (?:that|to (?!take care|have|enjoy|be |smile)|the|my|our|this)\b|(?:take"
    r"|make) (?:a )?note (?:of|that)\b|note (?:down|that (?:i|we|my|our|the))\b|(?:save|store|add|commit|put) (?:this"
    r"|that|it) (?:to|in|into) (?:your )?memory\b|for (?:future|later) reference\b|rappelle[- ]toi|souviens[- ]toi"
    r"|retiens (?:que|bien)|n'oublie(?:z)? pas|merk(?:e)? dir|denk(?:e)? daran|vergiss nicht|recuerda (?:que|siempre)"
    r"|no olvides|acu\u00e9rdate|lembre-se|n\u00e3o (?:se )?esque\u00e7a|ricorda(?:ti)? (?:che|di)|non dimenticare)"
    r"|\b(?:from now on|from this point (?:on|forward)|going forward,|in (?:all )?future (?:answers|replies|responses)"
    r"|d\u00e9sormais|\u00e0 partir de maintenant|ab jetzt|von nun an|in zukunft (?:immer|bitte|nur|nie)"
    r"|a partir de (?:ahora|agora)|de ahora en adelante|d'ora in poi)\b|\u8bb0\u4f4f|\u8bf7\u8bb0"
    r"|\u4ece\u73b0\u5728\u8d77|\u4ee5\u540e\u90fd|\u5225\u5fd8\u4e86"
    r"|\u899a\u3048\u3066(?:\u304a\u3044\u3066|\u304f\u3060\u3055\u3044)|\u5fd8\u308c\u306a\u3044\u3067"
    r"|\u4eca\u5f8c\u306f|\u3053\u308c\u304b\u3089\u306f"
)
"""Wording by which somebody asks for something to be remembered; expects a sentence from `cues.lowered`."""

_ERROR = re.compile(
    r"^[>|]?[ \t]?(?:traceback \(most recent call last\)|(?:[a-z_][\w.]*\.)?[A-Za-z_]\w*(?:Error|Exception)\b:?"
    r"|(?:fatal|panic|error|fail(?:ed|ure)|e)(?:\[\w+\])?: |npm err!|<(?:tool_use_)?error>|\*\*\* error"
    r"|assertion failed|(?:[^\n:]{1,80}: ){0,4}(?:command not found|no such file or directory|permission denied)"
    r"|(?:process |command )?(?:exited with|exit) (?:code|status):? [1-9]|(?:=+ )?\d+ failed\b)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins so; what stands further in is a line of some source, such as `error: null`."""
_FIXED = re.compile(
    r"\b(?:(?:is|was|are|been|that|it|now|issue|problem|error|bug) (?:now )?(?:fixed|resolved|solved|gone)|(?:i"
    r"|we)(?:['\u2019]ve| have)? (?:just )?(?:fixed|solved|resolved)|that (?:fixed|solved|worked|did it)"
    r"|(?:it )?works (?:now|again|fine|perfectly)|all tests pass|tests? (?:now )?pass(?:es|ed)?|c'est (?:corrig\u00e9"
    r"|r\u00e9gl\u00e9)|\u00e7a marche|behoben|gel\u00f6st|funktioniert (?:jetzt|wieder)|arreglado|resuelto|ya funciona"
    r"|resolvido|corrigido|risolto|funziona (?:ora|adesso))\b|\u89e3\u51b3\u4e86|\u4fee\u597d|\u4fee\u590d\u4e86"
    r"|\u76f4\u308a\u307e\u3057\u305f|\u89e3\u6c7a\u3057"
)


def critical_groups(groups: Sequence[Group]) -> frozenset[int]:
    """`first_seq` of the groups that have to stay: see the module.

    Constraints, decisions and what to remember are taken from people alone. An error is a tool's, or one that somebody
    pasted; it is resolved when a later call of the same tool succeeded, or a later message says so. The groups are
    those of one track, oldest first.
    """
    said = {group.first_seq for group in groups if any(_binds(entry) for entry in group.entries)}
    return frozenset(said | _unresolved(groups))


def _binds(entry: Entry) -> bool:
    people = entry.role in ("user", "other")
    return people and any(map(_is_binding, sentences(ends_of(entry.text, READ_CHARS))))


def _is_binding(sentence: str) -> bool:
    low = cues.lowered(sentence)
    if len(sentence) > _MAX_SENTENCE_CHARS or asks(low):
        return False
    return bool(
        cues.DECISION.search(low) or cues.ORDER.match(low) or cues.CONSTRAINT.search(low) or REMEMBER.search(low)
    )


def _unresolved(groups: Sequence[Group]) -> set[int]:
    """Groups with an error that nothing later took away, told from the newest group backwards."""
    found: set[int] = set()
    works: set[str] = set()
    fixed = False
    for group in reversed(groups):
        tools = _tools_of(group) if any(entry.role == "tool" for entry in group.entries) else {}
        for entry in reversed(group.entries):
            tool = entry.name or tools.get(entry.answers or "", "")
            if entry.role == "tool" and not is_error(entry):
                works.add(tool)
            elif is_error(entry) and not fixed and (entry.role != "tool" or tool not in works):
                found.add(group.first_seq)
            if entry.role in ("user", "assistant", "other") and _says_fixed(entry):
                fixed = True
    return found


def is_error(entry: Entry) -> bool:
    """Whether a tool's result is an error, by its mark or by a line of it; or whether somebody pasted one."""
    if entry.role == "tool":
        return is_marked_error(entry) or _ERROR.search(ends_of(entry.text, _EDGE_CHARS)) is not None
    return (
        entry.role in ("user", "other")
        and "\n" in entry.text
        and _ERROR.search(ends_of(entry.text, READ_CHARS)) is not None
    )


def _says_fixed(entry: Entry) -> bool:
    return _FIXED.search(cues.lowered(ends_of(entry.text, _EDGE_CHARS))) is not None


def _tools_of(group: Group) -> dict[str, str]:
    """The tool that each call of a group asks for, where its results do not name it themselves."""
    if all(entry.name for entry in group.entries if entry.role == "tool"):
        return {}
    found: dict[str, str] = {}
    for entry in group.entries:
        if entry.calls:
            with suppress(UnknownMessageError):
                found |= {call.id: call.name for call in requested_calls(decode(entry.payload)) if call.id}
    return found
