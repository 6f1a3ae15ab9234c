"""The plan of a view: what it shows besides the messages that come after it, fixed until the next condensation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Tag, TypeAdapter

from langchain_tiered_memory.summaries.tree.cover import CoverItem, Gap, Joint, Node

Answered: TypeAlias = Literal["in talk", "at work"]
"""How the first user message was answered: with words alone, or with calls of tools."""

_VERSION: Literal[5] = 5


def _kind(item: CoverItem | dict[str, Any]) -> str:
    """What an item of a cover is, by the ids that it has."""
    has = item.__contains__ if isinstance(item, dict) else lambda name: hasattr(item, name)
    return "joint" if has("ids") else "node" if has("id") else "gap"


Item: TypeAlias = Annotated[
    Annotated[Node, Tag("node")] | Annotated[Joint, Tag("joint")] | Annotated[Gap, Tag("gap")], Discriminator(_kind)
]
"""An item of a cover, as a plan's JSON keeps it."""


@cache
def _adapter() -> TypeAdapter[ViewPlan]:
    return TypeAdapter(ViewPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPlan:
    """Which summaries, messages and lines a view shows."""

    border: int
    """Messages up to this number are stood for by `items`."""
    tail_from: int
    """The recent messages start here: `border + 1`, or earlier where groups were interleaved."""
    items: tuple[Item, ...] = ()
    skip: tuple[str, ...] = ()
    """Level-1 summaries among `items` that cover messages at or behind `tail_from`."""
    queries: tuple[int, ...] = ()
    """`seq`s of user messages that stand behind the cover, because the recent messages did not show them."""
    answers: int = 0
    """`seq` of the assistant's message that the last of the user's answers, where the recent messages do not show it:
    it stands before that one. 0: none."""
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
    tasks: str = ""
    """The agent's own list of tasks as it wrote it last, where the recent messages do not show it."""
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
    v: Literal[5] = _VERSION
    """The version of this form: a plan of another one is made anew."""

    @property
    def shows_all(self) -> bool:
        """Whether nothing that was said on this track is out of sight: then there is nothing to quote of it."""
        return self.border == 0 and not (self.left or self.masked or self.held)

    def to_json(self) -> str:
        """As kept in the database."""
        return json.dumps(_adapter().dump_python(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, payload: str) -> ViewPlan | None:
        """A kept plan, or `None` where another version wrote it, or it is damaged."""
        try:
            return _adapter().validate_json(payload, strict=True)
        except ValueError:
            return None


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
