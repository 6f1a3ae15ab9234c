"""The form of values, and how people say that a value is no longer as they said."""

from __future__ import annotations

import re
from enum import StrEnum

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import CODE, DATE, EMAIL, NUMBER, PATH, URL
from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.sentences import asks

NAMED = re.compile(rf"{EMAIL.pattern}|{URL.pattern}|{CODE.pattern}")
"""E-mail addresses, URLs, versions, codes and hashes."""
_UNIT_WORD = re.compile(r"[$\u20ac\u00a3\u00a5%\u00b0]|[^\W\d_]{1,20}")


class Shape(StrEnum):
    """The form of a value."""

    PATH = "path"
    CODE = "code"
    DATE = "date"
    FIGURE = "figure"
    NAME = "name"
    """Of more than one word."""
    WORDS = "words"
    """None of these: a choice, a single name, or nothing that was found."""


_SHAPES = ((Shape.PATH, PATH), (Shape.CODE, NAMED), (Shape.DATE, DATE), (Shape.FIGURE, NUMBER))


def shape_of(value: str) -> Shape:
    """The form of a value, as `statements` found it."""
    for shape, pattern in _SHAPES:
        if pattern.match(value):
            return shape
    return Shape.NAME if value[:1].isupper() and " " in value else Shape.WORDS


def unit_of(value: str) -> str:
    """The unit of a figure, in lower case, without a plural's ending; empty for none."""
    if shape_of(value) != Shape.FIGURE:
        return ""
    unit = _UNIT_WORD.search(value)
    return unit[0].lower().removesuffix("s") if unit else ""


_FIRST = re.compile(r"(?:(?:(?:wait|hang on|hold on),? )?(?:no,|nope,)|wait,|actually|update:|edit:|correction)")
_TAKES_BACK = (
    r"correction|scratch (?:that|what)|mis(?:spoke|typed|read|remembered)|my (?:mistake|bad)|mixed (?:\w+ )?up"
    r"|was wrong|(?:no|oh|hang on),? wait|change of plans?"
    r"|(?:small|slight|quick|minor|last[- ]minute) (?:change|correction|update)"
    r"|update (?:on|for|to|about)|make that|turn(?:s|ed) out|no longer|any ?more|instead|rather than"
    r"|should (?:be|have been|read)|after all"
)
_CORRECTS = re.compile(
    rf"\b(?:{_TAKES_BACK}|changed (?:again|to|from|my|our)|revised to|switch(?:ed|ing) (?:to|from))\b"
)
_CHANGES = re.compile(
    r"^sorry, (?!i\b|to\b|about|for)"
    rf"|\b(?:{_TAKES_BACK}|updated?|revised|amended|changed?|make it|forget (?:what|about|that|the)"
    r"|ignore (?:what|that|the)|i told you|i said|moved|rescheduled|postponed|extended|delayed|pushed (?:back|to)"
    r"|brought forward|bumped|raised|lowered|cut to|increased to|reduced to|went (?:up|down|from)|took over|takes over"
    r"|replac(?:ed|es|ing)|switch(?:ed|ing)|is now|are now|it['\u2019]s now|now (?:at|is|it|has|uses|runs)|now$"
    r"|from (?:today|now on|tomorrow)|these days|renamed|reconsidered|on second thoughts?|new(?:ly)? (?:address|number"
    r"|phone|code|password|deadline|date|price|contact|owner|name|job)|meant)\b"
)
_DENIED = re.compile(
    r"\b(?:not|instead of|rather than|no longer|(?P<moved>from)|replac(?:es|ed|ing)|forget|ignore|scratch"
    r"|isn['\u2019]t|aren['\u2019]t|used to be|(?<=\()(?:was|formerly|previously)|told you|i said|nicht(?: mehr)?"
    r"|(?<=, )(?:no|non|pas|n\u00e3o)|et non(?: pas)?)\b"
    r"[\s\"'`]{1,4}(?:(?:the|a|an|at|on|in|use|using|with|to|of|by)\s){0,2}[\"'`]?"
    r"(?P<wrong>[$\u20ac\u00a3]?\w[\w.,:/@-]{0,80}+(?:\s\w[\w.:/-]{0,40}+){0,2})",
    re.IGNORECASE,
)
_MOVES = re.compile(
    r"\b(?:moved?|chang(?:ed?|ing)|went|gone|switch\w*|raised|lowered|cut|up|down|bumped|pushed|rescheduled"
    r"|postponed|increased|reduced|dropped"
    r"|migrat\w+|took over|takes over|taking over|inherited|renamed|revised|transferred)\b"
)
_ENDS = word_set(
    "a an the to for of at on in by with and but or so as is are was were be been it its it's that this these those my "
    "our your his her their we i you they he she now any anymore more if when because since only just too very really "
    "quite sure going able here there what which who good bad too yet all much many enough one"
)
_LEAST_CHARS = 3
_SUPPOSES = re.compile(
    r"(?:suppos\w*|imagin\w*|assum\w*|pretend|hypothetical\w*|let['\u2019]s say|angenommen|nehmen wir an|supongamos"
    r"|supon\w+|\u5047\u5982|\u5047\u8bbe|\u4eee\u306b)"
)
_DOUBTS = re.compile(
    # A condition, a supposition, a guess;
    rf"(?<!\w){_SUPPOSES.pattern}"
    r"|(?<!\w)(?:if|unless|whether|wish\w*|hope\w*|would"
    r"|could|might|may be|perhaps|maybe|possibly|probably|i (?:think|guess)|apparently|rumou?r\w*|wenn|falls"
    r"|vielleicht|k\u00f6nnte\w*|w\u00fcrde\w*|w\u00e4re\w*|si|peut-\u00eatre|serait|pourrait|quiz\u00e1s?"
    r"|tal vez|ser\u00eda|podr\u00eda|talvez|forse|sarebbe"
    # the words or the belief of others; what is not so, or not any more.
    r"|(?<!\b[iI] )(?:says?|said|claims?|claimed|thinks?|thought|believe[sd]?|suggest(?:s|ed)?|proposes?|proposed|wrote"
    r"|writes|reckons?|heard)|told (?:me|us)|according to|(?:not|n['\u2019]t) (?:true|the case)|untrue|false|wrongly"
    r"|doubts?|den(?:y|ies|ied)|sag(?:t|te)|meint\w*|behauptet\w*|laut|selon|d['\u2019]apr\u00e8s|dit|seg\u00fan|dice|secondo"
    r"|nicht wahr|stimmt nicht|pas vrai|faux|falso|used to|formerly|previously|originally|(?:in|for) (?:the )?"
    r"(?:story|novel|example))(?!\w)"
    r"|\u5982\u679c|\u8981\u662f|\u4e5f\u8bb8|\u53ef\u80fd|\u636e\u8bf4|\u8ba4\u4e3a"
    r"|\u3082\u3057|\u304b\u3082\u3057\u308c|\u306b\u3088\u308b\u3068"
)
"""Wording by which a clause says that what it tells is not plainly so. Only announced changes need it: where nothing is
announced, any further word speaks against a statement (`frames`)."""


def announces_change(text: str) -> bool:
    """Whether a clause says that something is otherwise than before."""
    low = cues.lowered(text)
    return bool(_FIRST.match(low) or _CHANGES.search(low.rstrip(" .!")))


def doubts(text: str) -> bool:
    """Whether a clause supposes, guesses, denies or repeats what it tells, so that nothing is settled by it."""
    low = text[:1].lower() + text[1:]  # "Dr. Said" is a name
    return asks(low) or _DOUBTS.search(low) is not None


def supposes(text: str) -> bool:
    """Whether a clause only plays with what it tells: nobody states it."""
    return _SUPPOSES.match(cues.lowered(text)) is not None


def cancels(text: str) -> bool:
    """Whether a clause says that its subject does not take place."""
    return cues.CANCELLED.search(cues.lowered(text)) is not None


def corrects(text: str) -> bool:
    """Whether a clause takes something back outright: narrower than `announces_change`."""
    low = cues.lowered(text)
    return bool(_FIRST.match(low) or _CORRECTS.search(low))


def denied_values(text: str) -> tuple[str, ...]:
    """The values that a clause takes back, as it says them: "8080" of "8443, not 8080"."""
    found: list[str] = []
    low = cues.lowered(text)
    for match in _DENIED.finditer(text):
        if match["moved"] and not _MOVES.search(low, 0, match.start()):
            continue
        words: list[str] = []
        for word in match["wrong"].split():
            if word.strip(".,:").casefold() in _ENDS:
                break
            words.append(word)
            if word.endswith((",", ".", ":")):
                break
        wrong = " ".join(words).strip(".,:")
        if len(wrong) >= _LEAST_CHARS or any(char.isdigit() for char in wrong):
            found.append(wrong)
    return tuple(found)
