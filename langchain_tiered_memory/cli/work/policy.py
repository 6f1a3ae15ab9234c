"""The work of `tiered-memory policy`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from langchain_tiered_memory.cli.screen import grid, out, print_json
from langchain_tiered_memory.context.mode import REASONS
from langchain_tiered_memory.context.numbers import NUMBERS, told
from langchain_tiered_memory.context.policy import LADDER, SHOWN_MODES, policy_of
from langchain_tiered_memory.settings import Settings

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import SettingsName


def show_policy(max_tokens: int, *, fixed: int, name: SettingsName, with_numbers: bool, to_json: bool) -> None:
    """Print the table of the policy: a line for each section, a column for each mode."""
    settings = Settings.named(name)
    columns = {mode: policy_of(mode, max_tokens, fixed=fixed, settings=settings) for mode in SHOWN_MODES}
    if to_json:
        numbers = {one: {"value": getattr(NUMBERS, one), **asdict(about)} for one, about in told().items()}
        print_json({"modes": columns, "ladder": LADDER, "numbers": numbers})
        return
    table = grid(f"{name}, {max_tokens:,} tokens: the most of each section", "section", numbers=tuple(columns))
    for row in columns["talk"]:
        table.add_row(row.section, *(f"{column.row(row.section).tokens:,}" for column in columns.values()))
    out().print(table)
    for row in columns["talk"]:
        way = f"gives way at step {row.gives_way}" if row.gives_way else "does not give way"
        out().print(f"{row.section}: {row.about}; {row.share:.1%} of {row.of} in talk, {way}", markup=False)
    out().print()
    for mode in SHOWN_MODES:
        out().print(f"{mode}: {REASONS[mode]}", markup=False)
    out().print()
    out().print("Where not all fits:")
    for step, (section, what) in enumerate(LADDER, 1):
        out().print(f"{step}. {section}: {what}", markup=False)
    if with_numbers:
        listed = grid("numbers that no setting turns", "number", numbers=("value",))
        for column in ("unit", "range", "origin"):
            listed.add_column(column, overflow="fold")
        for one, about in told().items():
            origin = f"{about.origin} by {about.by}" if about.by else about.origin
            listed.add_row(one, f"{getattr(NUMBERS, one):g}", about.unit, f"{about.least:g} to {about.most:g}", origin)
        out().print(listed)
