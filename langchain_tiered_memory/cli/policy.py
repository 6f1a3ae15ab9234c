"""`tiered-memory policy`: how much room each section of a context has, in each mode."""

from dataclasses import asdict
from typing import Annotated

import typer

from langchain_tiered_memory.cli.options import AsJson
from langchain_tiered_memory.cli.screen import grid, out, print_json
from langchain_tiered_memory.settings import Settings, SettingsName


def policy(
    *,
    max_tokens: Annotated[int, typer.Option(min=1, help="Budget of the context, in tokens.")] = 8000,
    fixed: Annotated[
        int, typer.Option(min=0, help="Tokens of the budget that system prompt and tool schemas take.")
    ] = 0,
    settings: Annotated[
        SettingsName,
        typer.Option(metavar="NAME", help="Named settings to show: balanced or economy."),
    ] = "balanced",
    numbers: Annotated[bool, typer.Option("--numbers", help="Also show the numbers that no setting changes.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how much room each section of a context has, in each mode, and what gives way where not all fits."""
    from langchain_tiered_memory.context.mode import REASONS  # noqa: PLC0415 - slow to import, as are the next
    from langchain_tiered_memory.context.numbers import NUMBERS, told  # noqa: PLC0415
    from langchain_tiered_memory.context.policy import LADDER, SHOWN_MODES, policy_of  # noqa: PLC0415

    chosen = Settings.named(settings)
    columns = {mode: policy_of(mode, max_tokens, fixed=fixed, settings=chosen) for mode in SHOWN_MODES}
    if as_json:
        figures = {one: {"value": getattr(NUMBERS, one), **asdict(about)} for one, about in told().items()}
        print_json({"modes": columns, "ladder": LADDER, "numbers": figures})
        return
    table = grid(f"{settings}, {max_tokens:,} tokens: the most of each section", "section", numbers=tuple(columns))
    for row in columns["talk"]:
        table.add_row(row.section, *(f"{column.row(row.section).tokens:,}" for column in columns.values()))
    out().print(table)
    lines: list[str] = []
    for row in columns["talk"]:
        way = f"gives way at step {row.gives_way}" if row.gives_way else "does not give way"
        lines.append(f"{row.section}: {row.about}; {row.share:.1%} of {row.of} in talk, {way}")
    lines += ["", *(f"{mode}: {REASONS[mode]}" for mode in SHOWN_MODES), "", "Where not all fits:"]
    lines += [f"{step}. {section}: {what}" for step, (section, what) in enumerate(LADDER, 1)]
    for line in lines:
        out().print(line, markup=False)
    if numbers:
        listed = grid("numbers that no setting changes", "number", numbers=("value",))
        for column in ("unit", "range", "origin"):
            listed.add_column(column, overflow="fold")
        for one, about in told().items():
            origin = f"{about.origin} by {about.by}" if about.by else about.origin
            listed.add_row(one, f"{getattr(NUMBERS, one):g}", about.unit, f"{about.least:g} to {about.most:g}", origin)
        out().print(listed)
