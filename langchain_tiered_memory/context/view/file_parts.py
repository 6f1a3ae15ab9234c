"""Chooses the parts of files that a view shows word for word: the newest version of each part once, best first.

An agent that works on files needs next what it wrote itself, then the lines around what it touched, then what it read
last, and most of all in files that it is at work on: on recorded runs the text of the next edit stood in its own former
writes three times as often, token for token, as in reads of the same age, and half as often where twice as much work
lay between now and the last look at the file; the age of the text itself tells less. So each line is worth what it is
divided by the age of its file and by the root of its own, more the more it has to do with what the agent is doing
(`relatedness`), and the room goes to the lines that are worth most.

Readings that overlap stand as they were read: a passage that one has whole is shown once, lines at their edges may be
shown twice. What a shell changed without saying how is doubtful, or gone. What a later call replaced is shown as it
stands after it; what the recent messages show is not shown again.
"""

from __future__ import annotations

import math
import posixpath
import re
from bisect import bisect
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.messages.file_accesses import ANY_FILE, is_at, may_be_same, same_names
from langchain_tiered_memory.messages.file_texts import Change, Reading, Unsaid
from langchain_tiered_memory.text.fencing import neutralised, plain_label
from langchain_tiered_memory.text.readings import read_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet


_WORD = re.compile(r"[^\W\d]\w{2,79}")
"""Names as code spells them. Shorter ones stand in every file."""


def words_in(text: str) -> frozenset[str]:
    """The names and words of a text, as they are spelt."""
    return frozenset(_WORD.findall(text))


def relatedness(passages: Sequence[AbstractSet[str]], doing: AbstractSet[str]) -> list[float]:
    """For each passage, from 0 to 1, how much it has in common with what is being done, beside the others.

    A word weighs by the square of its rarity among the passages, as in the cosine of two texts; a long passage has more
    words of any kind, so what it has in common is divided by the root of their number.
    """
    common = [words & doing for words in passages]
    having = Counter(word for words in common for word in words)
    rarity = {word: math.log(1 + len(passages) / count) ** 2 for word, count in having.items()}
    found = [
        math.fsum(rarity[word] for word in shared) / math.sqrt(len(words)) if shared else 0.0
        for words, shared in zip(passages, common, strict=True)
    ]
    most = max(found, default=0.0)
    return [one / most for one in found] if most else found


_LEAST_CHARS = 8
"""A text with less to read says nothing."""
_FRAGMENT_TOKENS = 14
"""The line that says where a run of lines comes from."""
_GAP_TOKENS = 7
"""The line that says how many lines are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """A change or a reading, where it stands in the run."""

    seq: int
    age: int
    """Tokens of file work since."""
    text: Change | Reading | Unsaid
    shown: bool = False
    """Whether the view shows it anyway: then it only tells what is newer than what went before it."""


@dataclass(slots=True, kw_only=True)
class _Fragment:
    """A run of lines as it stands now."""

    path: str
    seq: int
    age: int
    lines: list[str]
    written: bool = False
    shown: bool = False
    changed: bool = False
    """Whether something in it was written after it was read, or written."""
    doubtful: int = 0
    """The message with the command that changed the file since, and did not say how; 0: none."""
    touched: list[tuple[int, int, int]] = field(default_factory=list)
    """Lines that the agent wrote, from and up to, and when, as an age."""
    read: list[tuple[int, int, int]] = field(default_factory=list)
    """Lines that were read again since."""
    seen: list[tuple[int, int, int]] = field(default_factory=list)
    """Lines that the view shows where they were written."""

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class _Piece:
    fragment: int
    start: int
    end: int
    words: frozenset[str]
    worth: float


def file_parts(
    texts: Sequence[FileText], *, room: int, count: Callable[[str], int], doing: AbstractSet[str] = frozenset()
) -> str:
    """The parts of files that are worth most, within `room` tokens; empty where there are none.

    `texts` are what calls wrote and read, oldest first; `doing` are the words of the latest messages.
    """
    texts = _under_one_name(texts)
    fragments = list(_newest_versions(texts))
    touched: dict[str, int] = {}
    for one in texts:
        touched[one.text.path] = min(one.age, touched.get(one.text.path, one.age))
    touched |= {path: min(age, NUMBERS.part_named_file_age) for path, age in touched.items() if _is_named(path, doing)}
    pieces = _by_worth(fragments, touched, doing)
    spent, paths = 0, set[str]()
    taken: list[_Piece] = []
    # Of each run of lines, where passages that are taken begin and end: a passage beside one needs no mark there.
    borders: dict[int, set[int]] = {}
    # What another run of lines says is not said again; what one repeats is, for an edit needs its passage unbroken.
    said: dict[str, list[tuple[int, str]]] = {}
    for number, fragment in enumerate(fragments):
        if fragment.shown:
            said.setdefault(fragment.path, []).append((number, fragment.text))
    for piece in pieces:
        fragment = fragments[piece.fragment]
        text = "\n".join(fragment.lines[piece.start : piece.end])
        if any(text in one for number, one in said.get(fragment.path, ()) if number != piece.fragment):
            continue
        beside = borders.get(piece.fragment)
        marks = _FRAGMENT_TOKENS + _GAP_TOKENS * (piece.end < len(fragment.lines)) if beside is None else _GAP_TOKENS
        marks -= _GAP_TOKENS * len({piece.start, piece.end} & (beside or set()))
        cost = count(text) + 1 + marks + (0 if fragment.path in paths else count(fragment.path) + 2)
        if spent + cost > room:
            if room - spent < _FRAGMENT_TOKENS:
                break
            continue
        spent += cost
        borders.setdefault(piece.fragment, set()).update((piece.start, piece.end))
        paths.add(fragment.path)
        said.setdefault(fragment.path, []).append((piece.fragment, text))
        taken.append(piece)
    # Lines may count as more together than apart.
    while (parts := _rendered(fragments, taken, count)) and count(parts) > room:
        taken.pop()
    return parts


def _under_one_name(texts: Sequence[FileText]) -> list[FileText]:
    """The same texts, all of one file under its longest name: what an agent writes under one changes what it read."""
    paths = sorted({one.text.path for one in texts} - {ANY_FILE})
    names, longest = same_names(paths), dict[str, str]()
    for path in paths:
        longest[names[path]] = max(longest.get(names[path], ""), path, key=len)
    meant = {path: longest[name] for path, name in names.items() if longest[name] != path}
    if not meant:
        return list(texts)
    return [replace(one, text=replace(one.text, path=meant.get(one.text.path, one.text.path))) for one in texts]


def _newest_versions(texts: Sequence[FileText]) -> Iterator[_Fragment]:
    """Runs of lines, each as it stands after all that was written later; what a later one holds whole is left out."""
    by_path: dict[str, list[_Fragment]] = {}
    for one in texts:
        text = one.text
        if isinstance(text, Unsaid):
            _tell_of_command(by_path, text, seq=one.seq)
            continue
        before = by_path.setdefault(text.path, [])
        fresh = _Fragment(path=text.path, seq=one.seq, age=one.age, lines=[], shown=one.shown)
        if isinstance(text, Reading):
            fresh.lines = list(text.lines)
        else:
            if text.whole:
                before.clear()
            if text.old and not any(text.old in fragment.text for fragment in before):
                # It reaches over the end of what is known: what is known of it is not what stands there.
                lost = {line for line in text.old.split("\n") if len(line.strip()) >= _LEAST_CHARS}
                for fragment in before:
                    fragment.doubtful = fragment.doubtful if lost.isdisjoint(fragment.lines) else one.seq
            # A loop, for each of the runs has to be told of the change, whichever of them is shown in the end.
            stands = [_replace(fragment, text, age=one.age, shown=one.shown) for fragment in before if text.old]
            if any(stands) and not one.shown:
                continue
            fresh.lines, fresh.written = text.new.split("\n"), True
        _take_in(before, fresh)
    for found in by_path.values():
        yield from found


def _tell_of_command(by_path: dict[str, list[_Fragment]], text: Unsaid, *, seq: int) -> None:
    """What a command made of files: their lines may be others, or are not known any more."""
    # What is written to a folder leaves the other files there.
    meant = is_at if text.fate == "gone" else may_be_same
    for path in [path for path in by_path if text.path == ANY_FILE or meant(path, text.path)]:
        if text.fate != "edited":
            del by_path[path]
        for fragment in by_path.get(path, ()):
            fragment.doubtful = seq


def _take_in(before: list[_Fragment], fresh: _Fragment) -> None:
    """Add a run of lines to those of its file: what it says is taken from the others."""
    whole = fresh.text
    for fragment in [one for one in before if one.text in whole or (one.doubtful and _mostly_in(one, fresh))]:
        before.remove(fragment)
        place = whole.find(fragment.text)
        if place >= 0:
            start = whole.count("\n", 0, place)
            fresh.touched += [(a + start, b + start, age) for a, b, age in fragment.touched]
            if fragment.written:
                fresh.touched.append((start, start + len(fragment.lines), fresh.age))
    for fragment in () if fresh.written else reversed(before):
        place = fragment.text.find(whole)
        if place >= 0 and not fragment.shown:
            start = fragment.text.count("\n", 0, place)
            end = start + len(fresh.lines)
            if not fresh.shown:
                fragment.read.append((start, end, fresh.age))
                return
            fragment.seen.append((start, end, fresh.age))
    before.append(fresh)


def _mostly_in(fragment: _Fragment, fresh: _Fragment) -> bool:
    """Whether more than half of the lines that say something stand in a newer run, or of those in it here."""
    old, new = ({line for line in one.lines if line.strip()} for one in (fragment, fresh))
    return 2 * len(old & new) > min(len(old), len(new))


def _replace(fragment: _Fragment, change: Change, *, age: int, shown: bool) -> bool:
    """What a later write replaced, replaced; whether it was there and can be shown there."""
    whole, old, new = fragment.text, change.old, change.new
    starts: list[int] = []  # the line of each place
    place, line, counted = whole.find(old), 0, 0
    while place >= 0:
        line, counted = line + whole.count("\n", counted, place), place
        starts.append(line)
        place = whole.find(old, place + len(old)) if change.every else -1
    if not starts:
        return False
    fragment.lines, fragment.changed = whole.replace(old, new, len(starts)).split("\n"), True
    more = new.count("\n") - old.count("\n")
    behind = [start + old.count("\n") + 1 for start in starts]
    for known in (fragment.touched, fragment.read, fragment.seen):
        known[:] = [(a + more * bisect(behind, a), b + more * bisect(behind, b), when) for a, b, when in known]
    firsts = dict.fromkeys(start + more * before for before, start in enumerate(starts))
    written = [(first, first + new.count("\n") + 1, age) for first in firsts]
    fragment.touched += written
    if shown:
        fragment.seen += written
    return not fragment.shown


def _by_worth(fragments: Sequence[_Fragment], touched: Mapping[str, int], doing: AbstractSet[str]) -> list[_Piece]:
    """The pieces, best first: those that have to do with what is being done before others of their kind and age."""
    pieces: list[_Piece] = []
    for number, fragment in enumerate(fragments):
        if fragment.shown:
            continue
        worth = _worth(fragment)
        of_file = touched.get(fragment.path, fragment.age) + NUMBERS.part_least_file_age
        for start, end, words in _telling_passages(fragment.text):
            pieces.append(_Piece(number, start, end, words, max(worth[start:end]) / of_file))
    related = relatedness([piece.words for piece in pieces], doing)
    keys = [
        (-piece.worth * (1 + NUMBERS.part_related_times * share), -fragments[piece.fragment].seq, piece.start, place)
        for place, (piece, share) in enumerate(zip(pieces, related, strict=True))
    ]
    return [pieces[place] for *_, place in sorted(keys)]


@read_once
def _telling_passages(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """The passages of a text, by its lines, and their words, without those that say nothing: most stand as before."""
    lines = text.split("\n")
    return tuple(
        (start, end, words_in("\n".join(lines[start:end])))
        for start, end in _passages(lines)
        if sum(len(line.strip()) for line in lines[start:end]) >= _LEAST_CHARS
    )


def _passages(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where lines fall apart: at empty ones, or where they get long. What would be left over at the end stays."""
    sizes = [len(line) + 1 for line in lines]
    left = sum(sizes)
    start = chars = 0
    for place, (size, following) in enumerate(zip(sizes, (*sizes[1:], 1), strict=True)):
        chars += size
        left -= size
        is_full = chars + following - 1 > NUMBERS.part_most_piece_chars
        if left >= NUMBERS.part_piece_chars and (
            is_full or (chars >= NUMBERS.part_piece_chars and not lines[place].strip())
        ):
            yield start, place + 1
            start, chars = place + 1, 0
    if start < len(lines):
        yield start, len(lines)


def _worth(fragment: _Fragment) -> list[float]:
    """Of each line: most where the agent wrote it, more the nearer it is to that, less the older it is."""
    worth = [_faded(NUMBERS.part_written_worth if fragment.written else NUMBERS.part_read_worth, fragment.age)] * len(
        fragment.lines
    )
    for places, kind, lines in (
        (fragment.read, NUMBERS.part_read_worth, 0),
        (fragment.touched, NUMBERS.part_around_worth, NUMBERS.part_around_lines),
        (fragment.touched, NUMBERS.part_next_worth, NUMBERS.part_next_lines),
        (fragment.touched, NUMBERS.part_written_worth, 0),
    ):
        for start, end, age in places:
            of_age = _faded(kind, fragment.age if lines else age)
            for line in range(max(start - lines, 0), min(end + lines, len(worth))):
                worth[line] = max(worth[line], of_age)
    for start, end, _ in fragment.seen:
        worth[start:end] = [0.0] * len(worth[start:end])
    return worth


def _faded(worth: float, age: int) -> float:
    """What a line of such a worth is worth at an age: less by its root, for the age of its file counts beside it."""
    return worth / math.sqrt(max(age, NUMBERS.part_least_age))


def _is_named(path: str, doing: AbstractSet[str]) -> bool:
    """Whether what is being done names a file, with or without its ending: whoever does that is about to turn to it."""
    stem = words_in(posixpath.basename(path.replace("\\", "/")).split(".")[0])
    return bool(stem) and stem <= doing


def _rendered(fragments: Sequence[_Fragment], taken: Sequence[_Piece], count: Callable[[str], int]) -> str:
    """The parts by file, oldest first; each run of lines says what is left out before it."""
    by_fragment: dict[int, list[_Piece]] = {}
    for piece in sorted(taken, key=lambda one: (one.fragment, one.start)):
        by_fragment.setdefault(piece.fragment, []).append(piece)
    runs: dict[str, list[str]] = {}
    latest: dict[str, int] = {}
    for number in sorted(by_fragment, key=lambda one: fragments[one].seq):
        fragment = fragments[number]
        runs.setdefault(fragment.path, [plain_label(fragment.path)]).append(_run(fragment, by_fragment[number], count))
        latest[fragment.path] = fragment.seq
    return neutralised("\n\n".join("\n".join(runs[path]) for path in sorted(runs, key=latest.__getitem__)))


def _run(fragment: _Fragment, pieces: Sequence[_Piece], count: Callable[[str], int]) -> str:
    spans: list[list[int]] = []
    for piece in pieces:
        # Lines that are no longer than what would be said of them are shown.
        if spans and count("\n".join(fragment.lines[spans[-1][1] : piece.start])) < _GAP_TOKENS:
            spans[-1][1] = piece.end
        else:
            spans.append([piece.start, piece.end])
    done = ("written" if fragment.written else "read") + (" and changed since" if fragment.changed else "")
    done += f", message {fragment.seq}"
    if fragment.doubtful:
        done += f"; lines may be others since a command in message {fragment.doubtful}"
    lines, at = [], 0
    for start, end in spans:
        left = f", {start - at} lines before left out" if start > at else ""
        lines.append(f"[{done}{left}]" if at == 0 else f"[{start - at} lines left out]")
        lines += fragment.lines[start:end]
        at = end
    if at < len(fragment.lines):
        lines.append(f"[{len(fragment.lines) - at} lines left out]")
    return "\n".join(lines)
