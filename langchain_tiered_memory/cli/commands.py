"""How commands look in `--help`: a switch shows no type, for there is none to give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Iterable


class Command(TyperCommand):
    """A command whose switches are shown by name alone: newer versions of typer write `<bool>` behind them."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - typer's own click, which has no public name
        """All arguments and options, help included."""
        return _without_switch_types(super().get_params(ctx))


class Group(TyperGroup):
    """The command with its commands."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401 - as above
        """All arguments and options, help included."""
        return _without_switch_types(super().get_params(ctx))


def _without_switch_types(params: Iterable[Any]) -> list[Any]:
    shown = list(params)
    for one in shown:
        if getattr(one, "is_flag", False):
            one.metavar = ""
    return shown
