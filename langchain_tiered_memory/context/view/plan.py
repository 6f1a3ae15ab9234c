"""The plan of a view: what it shows besides the messages that come after it, fixed until the next condensation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NotRequired, TypeAlias

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from langchain_tiered_memory.summaries.tree.cover import CoverItem, Gap, GapReason, Joint, Node, Resolution

Answered: TypeAlias = Literal["in talk", "at work"]
"""How the first user message was answered: with words alone, or with calls of tools."""

_VERSION = 4


class _StoredGap(TypedDict):
    kind: Literal["gap"]
    first: int
    last: int
    count: int
    why: GapReason | None


class _StoredNode(TypedDict):
    kind: Literal["node"]
    first: int
    last: int
    count: int
    id: str
    level: int
    tokens: int
    resolution: Resolution
    text: str


class _StoredJoint(TypedDict):
    kind: Literal["joint"]
    first: int
    last: int
    count: int
    ids: list[str]
    tokens: int
    text: str
    gaps: list[_StoredGap]


class _Stored(TypedDict):
    """A plan's JSON: what is not of this form is damaged, or of another version."""

    v: int
    border: int
    tail_from: int
    items: list[_StoredGap | _StoredNode | _StoredJoint]
    skip: list[str]
    queries: list[int]
    ratio: float
    provisional: bool
    masked: list[tuple[int, int]]
    left: list[int]
    left_spans: list[_StoredGap]
    kept: list[int]
    files: str
    parts: str
    facts: str
    held: bool
    since: NotRequired[int]
    always: NotRequired[list[int]]
    answered: NotRequired[Answered]


@cache
def _adapter() -> TypeAdapter[_Stored]:
    return TypeAdapter(_Stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPlan:
    """Which summaries, messages and lines a view shows."""

    border: int
    """Messages up to this number are stood for by `items`."""
    tail_from: int
    """The recent messages start here: `border + 1`, or earlier where groups were interleaved."""
    items: tuple[CoverItem, ...] = ()
    skip: tuple[str, ...] = ()
    """Level-1 summaries among `items` that cover messages at or behind `tail_from`."""
    queries: tuple[int, ...] = ()
    """`seq`s of user messages that stand behind the cover, because the recent messages did not show them."""
    ratio: float = 1.0
    """Billed per raw token, as known when the plan was made."""
    provisional: bool = False
    """Whether messages had to be left out that are not condensed yet."""
    masked: tuple[tuple[int, int], ...] = ()
    """Tool outputs among the recent messages that stand there by head, pointer and tail: `seq`, and tokens kept."""
    left: tuple[int, ...] = ()
    """First `seq`s of groups behind `tail_from` that are not shown: the window slid, or they were pruned."""
    left_spans: tuple[Gap, ...] = ()
    """Lines that name them."""
    kept: tuple[int, ...] = ()
    """First `seq`s of groups before `tail_from` that are shown as themselves, though the cover stands for them too."""
    files: str = ""
    """The list of files that what is not shown touched."""
    parts: str = ""
    """Parts of files word for word, that a run wrote and read before `tail_from`."""
    facts: str = ""
    """The list of what messages up to the border stated and still holds."""
    held: bool = False
    """Whether a condensation of this view was undone: it is made again only when the view does not fit."""
    since: int = 0
    """`seq` of the message with the provider's own compaction that the view begins with: it stands for all before it,
    and is shown whole. 0: none."""

    always: tuple[int, ...] = ()
    """`seq`s of messages that their kinds keep in view, the most important last; quoted where they do not stand."""
    answered: Answered | None = None
    """How the first user message was answered: then it is no goal any more. What was asked for at work is quoted among
    the user's earlier messages; in talk the record tells it."""

    @property
    def shows_all(self) -> bool:
        """Whether nothing that was said on this track is out of sight: then there is nothing to quote of it."""
        return self.border == 0 and not (self.left or self.masked or self.held)

    def to_json(self) -> str:
        """As kept in the database."""
        return json.dumps(
            {
                "v": _VERSION,
                "border": self.border,
                "tail_from": self.tail_from,
                "items": [_item_to_json(item) for item in self.items],
                "skip": self.skip,
                "queries": self.queries,
                "ratio": self.ratio,
                "provisional": self.provisional,
                "masked": self.masked,
                "left": self.left,
                "left_spans": [_item_to_json(item) for item in self.left_spans],
                "kept": self.kept,
                "files": self.files,
                "parts": self.parts,
                "facts": self.facts,
                "held": self.held,
                # Left out where there is none: plans of versions that knew of no compaction stay what they were.
                **({"since": self.since} if self.since else {}),
                **({"always": self.always} if self.always else {}),
                **({"answered": self.answered} if self.answered else {}),
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, payload: str) -> ViewPlan | None:
        """A kept plan, or `None` where another version wrote it, or it is damaged."""
        try:
            stored = _adapter().validate_json(payload, strict=True)
        except ValueError:
            return None
        if stored["v"] != _VERSION:
            return None
        return cls(
            border=stored["border"],
            tail_from=stored["tail_from"],
            items=tuple(_item_from_json(item) for item in stored["items"]),
            skip=tuple(stored["skip"]),
            queries=tuple(stored["queries"]),
            ratio=stored["ratio"],
            provisional=stored["provisional"],
            masked=tuple((seq, keep) for seq, keep in stored["masked"]),
            left=tuple(stored["left"]),
            left_spans=tuple(_gap_from_json(item) for item in stored["left_spans"]),
            kept=tuple(stored["kept"]),
            files=stored["files"],
            parts=stored["parts"],
            facts=stored["facts"],
            held=stored["held"],
            since=stored.get("since", 0),
            always=tuple(stored.get("always", ())),
            answered=stored.get("answered"),
        )


def border_of_another_version(payload: str) -> int | None:
    """The border of a kept plan that another version of this package wrote: made anew when it is needed, no damage."""
    try:
        stored = json.loads(payload)
    except ValueError:
        return None
    if not isinstance(stored, dict) or stored.get("v") == _VERSION:
        return None
    border = stored.get("border")
    return border if type(border) is int else None


def _item_to_json(item: CoverItem) -> dict[str, Any]:
    shared = {"first": item.first_seq, "last": item.last_seq, "count": item.entry_count}
    if isinstance(item, Gap):
        return shared | {"kind": "gap", "why": item.why}
    shown = shared | {"tokens": item.tokens, "text": item.text}
    if isinstance(item, Joint):
        return shown | {"kind": "joint", "ids": item.ids, "gaps": [_item_to_json(gap) for gap in item.gaps]}
    return shown | {"kind": "node", "id": item.id, "level": item.level, "resolution": item.resolution}


def _item_from_json(stored: _StoredGap | _StoredNode | _StoredJoint) -> CoverItem:
    if stored["kind"] == "gap":
        return _gap_from_json(stored)
    if stored["kind"] == "joint":
        return Joint(
            first_seq=stored["first"],
            last_seq=stored["last"],
            entry_count=stored["count"],
            ids=tuple(stored["ids"]),
            tokens=stored["tokens"],
            text=stored["text"],
            gaps=tuple(_gap_from_json(gap) for gap in stored["gaps"]),
        )
    return Node(
        id=stored["id"],
        level=stored["level"],
        first_seq=stored["first"],
        last_seq=stored["last"],
        entry_count=stored["count"],
        tokens=stored["tokens"],
        resolution=stored["resolution"],
        text=stored["text"],
    )


def _gap_from_json(stored: _StoredGap) -> Gap:
    return Gap(
        first_seq=stored["first"],
        last_seq=stored["last"],
        entry_count=stored["count"],
        why=stored["why"],
    )
