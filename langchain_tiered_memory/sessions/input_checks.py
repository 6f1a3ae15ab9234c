"""The check of the name of a view: which there are, an opened memory's settings alone say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import ArgumentError

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import Settings

_OWN_VIEWS = ("default", "recall", "minimal")
"""Views that need no setting."""


def check_view(view: str, settings: Settings, *, more: tuple[str, ...] = ()) -> None:
    """That a view is known.

    Args:
        view: Its name.
        settings: Those of the memory.
        more: Names of views that an integration knows besides.

    Raises:
        ArgumentError: when it is not.
    """
    known = (*_OWN_VIEWS, *more, *settings.context.views)
    if view not in known:
        msg = f"there is no view {view!r}: use one of {', '.join(map(repr, known))}, or add it to context.views"
        raise ArgumentError(msg)
