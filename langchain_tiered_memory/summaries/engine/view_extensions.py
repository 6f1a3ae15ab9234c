"""What a user puts in to decide about views: when one is condensed, and what leaves it when the window slides."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.engine.extension_calls import ExtensionCaller, Given

if TYPE_CHECKING:
    from langchain_tiered_memory.extensions import (
        ThresholdQuestion,
        ThresholdResolver,
        TruncationQuestion,
        TruncationSelector,
    )


class ViewExtensions:
    """At most one threshold resolver and one truncation selector, called through the door.

    Args:
        door: Calls them with a deadline, and reports one that fails.
    """

    def __init__(self, caller: ExtensionCaller) -> None:
        self._door = caller
        self.threshold_resolver: ThresholdResolver | None = None
        """Decides at how many percent of the window a view is condensed."""
        self.truncation_selector: TruncationSelector | None = None
        """Chooses what leaves a view when the window slides."""

    def resolve_threshold(self, question: ThresholdQuestion) -> float | None:
        """What the resolver says; `None` where there is none, it has no opinion, or it failed."""
        resolver = self.threshold_resolver
        if resolver is None:
            return None
        answer = self._door.ask(
            f"{type(resolver).__name__}.resolve",
            lambda: resolver.resolve(question),
            _as_percent,
            owner=resolver,
            session_id=question.session_id,
        )
        return answer.value[0] if isinstance(answer, Given) else None

    def select_truncation(self, question: TruncationQuestion, *, session_id: str) -> Collection[object]:
        """What the selector would leave out; empty where there is none, or it failed."""
        selector = self.truncation_selector
        if selector is None:
            return ()
        answer = self._door.ask(
            f"{type(selector).__name__}.select",
            lambda: selector.select(question),
            _as_collection,
            owner=selector,
            session_id=session_id,
        )
        return answer.value if isinstance(answer, Given) else ()


def _as_percent(answer: object) -> tuple[float | None] | None:
    if answer is None:
        return (None,)
    if isinstance(answer, bool) or not isinstance(answer, int | float) or math.isnan(answer):
        return None
    return (float(answer),)


def _as_collection(answer: object) -> Collection[object] | None:
    return answer if isinstance(answer, Collection) and not isinstance(answer, str | bytes) else None
