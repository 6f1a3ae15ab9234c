"""Pictures of what sessions tell: drawn from public values, labelled, and with a remedy where matplotlib is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory import plots
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.types.files import ContextSize, WindowUse
from langchain_tiered_memory.types.outcomes import CostLedger, CostRow
from langchain_tiered_memory.types.records import Spent, SummaryTree
from tests.memory_builders import open_memory, turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

pytest.importorskip("matplotlib")


def some_use(count: int = 5) -> WindowUse:
    return WindowUse(
        ContextSize(
            at=number,
            track="main",
            tokens=100 * number,
            limit=1000,
            zone="safe",
            needed_tokens=300 * number,
            sections={"recent": 60 * number, "$mine$": 30 * number, "system": 10 * number},
        )
        for number in range(1, count + 1)
    )


def some_tree() -> SummaryTree:
    with open_memory() as memory:
        session = memory.session("s")
        for number in range(24):
            session.add_messages(turn(number))
        session.flush()
        return session.tree()


def some_costs(*rows: tuple[int, int, int]) -> CostLedger:
    made = tuple(
        CostRow(
            outcome_id="o",
            at=0.0,
            spent=Spent(calls=1, input_tokens=spent),
            spent_cost=None,
            saved_tokens_per_call=saved,
            calls_since=calls,
            saved_tokens=saved * calls,
            saved_cost=None,
            breaks_even_after=spent / saved,
        )
        for spent, saved, calls in rows
    )
    return CostLedger(rows=made, spent=Spent(), spent_cost=None, saved_tokens=0, saved_cost=None, prefix_breaks=0)


DRAWN: dict[str, Callable[[bool], Figure]] = {
    "window_use": lambda dark: plots.window_use(some_use(), dark=dark),
    "composition": lambda dark: plots.composition(some_use(), dark=dark),
    "sent": lambda dark: plots.sent(some_use(), [100, 300, 600, 1000, 1500], dark=dark),
    "tree": lambda dark: plots.tree(some_tree(), dark=dark),
    "recall": lambda dark: plots.recall({"a view": {1000: 0.5, 2000: 0.75}}, dark=dark),
    "costs": lambda dark: plots.costs(some_costs((100, 50, 4)), dark=dark),
    "in_view_against_billed": lambda dark: plots.in_view_against_billed({"default": [(1000, 0.9)]}, dark=dark),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_has_a_title_and_labels_and_the_colours_of_its_page(name: str) -> None:
    light, dark = DRAWN[name](False), DRAWN[name](True)  # noqa: FBT003 - light, dark
    axes = light.axes[0]
    assert axes.get_title(loc="left")
    assert axes.get_xlabel()
    assert axes.get_ylabel() or name == "tree"
    assert light.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    assert max(dark.get_facecolor()[:3]) < 0.2
    light.canvas.draw()  # lays everything out: a text that cannot be drawn raises here


def test_a_composition_stands_in_the_order_of_a_request_with_a_users_own_sections_last() -> None:
    legend = plots.composition(some_use()).axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["$mine$", "recent", "system"]


def test_the_icicle_has_a_bar_for_each_summary_as_wide_as_its_messages() -> None:
    tree = some_tree()
    bars = plots.tree(tree).axes[0].patches
    widths = sorted(bar.get_width() for bar in bars)  # type: ignore[attr-defined]
    assert widths == sorted(one.last_seq - one.first_seq + 1 for one in tree.summaries)


def test_what_was_spent_and_saved_is_summed_up_and_the_call_that_paid_is_marked() -> None:
    axes = plots.costs(some_costs((300, 50, 10), (100, 100, 4))).axes[0]
    saved, spent = ([*map(int, line.get_ydata())] for line in axes.lines[:2])  # type: ignore[arg-type]
    assert saved == [0, 50, 100, 150, 200, 250, 300, 450, 600, 750, 900]
    assert spent == [300] * 6 + [400] * 5
    assert [text.get_text() for text in axes.texts] == [" paid after 7"]
    never = plots.costs(some_costs((1000, 50, 3))).axes[0]
    assert list(never.texts) == []


@pytest.mark.parametrize(
    ("draw", "values"),
    [
        (plots.window_use, [WindowUse()]),
        (plots.composition, [WindowUse()]),
        (plots.sent, [WindowUse(), []]),
        (plots.sent, [some_use(2), [1]]),
        (plots.tree, [SummaryTree(session_id="s", summaries=(), messages=0, tokens=0)]),
        (plots.recall, [{}]),
        (plots.costs, [some_costs()]),
        (plots.in_view_against_billed, [{}]),
    ],
)
def test_nothing_to_draw_is_said_with_where_to_get_it(draw: Callable[..., Figure], values: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match="give"):
        draw(*values)


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SettingsError, match="pip install"):
        plots.window_use(some_use())
