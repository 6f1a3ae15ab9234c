"""Reserve for what other middlewares add to a request behind the memory, learnt from earlier requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from langchain_tiered_memory.models.message_counting import HIGHEST_RATIO

STEP_TOKENS = 512
"""Room for what others add is set aside in steps: a budget that moves with each call would make each view anew."""
_REMEMBERED = 8
"""Requests whose additions count, the largest of them: what is there only now and then, such as a skill that was read,
moves the budget seldom, and what is gone for good is let go of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What earlier requests of one agent to one model had besides what was counted for them."""

    behind: tuple[int, ...] = ()
    """Tokens that were added to each of the latest requests, newest last."""
    unseen: tuple[int, ...] = ()
    """Tokens by which the provider counted more than we did, additions included, at each of the latest requests."""

    @property
    def tokens(self) -> int:
        """Tokens that the next request leaves free."""
        return stepped(max(self.behind, default=0)) + stepped(max(self.unseen, default=0))

    def after(self, *, behind: int, unseen: int | None) -> Aside:
        """After one more request, whether it was refused or answered.

        Args:
            behind: What was added to it.
            unseen: By how much the provider counted more than we did; `None` where it did not say.
        """
        counted = self.unseen if unseen is None else (*self.unseen, max(unseen, 0))[-_REMEMBERED:]
        return Aside(behind=(*self.behind, behind)[-_REMEMBERED:], unseen=counted)


def unseen_in(*, took: int, counted: int) -> int | None:
    """By how much a provider counted more than we did; `None` where its figure must measure something else.

    Args:
        took: What the provider says that the request took; 0 where it says nothing.
        counted: What we counted for it.
    """
    if took < 1 or took > counted * HIGHEST_RATIO:
        return None
    return max(took - counted, 0)


def stepped(tokens: int) -> int:
    """`tokens`, rounded up to whole steps."""
    return math.ceil(max(tokens, 0) / STEP_TOKENS) * STEP_TOKENS
