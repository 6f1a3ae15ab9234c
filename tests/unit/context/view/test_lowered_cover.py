"""A cover is lowered by what is asked for and hardly more: its oldest more briefly, then in a line, then joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.view.cover_builder import CoverParts, cover_of_levels, lowered_cover
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.settings import Settings, TreeSettings
from langchain_tiered_memory.summaries.tree.cover import Joint, Node, tokens_of
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, conversation, open_memory, small_levels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.summaries.tree.cover import Choice, CoverItem


@pytest.fixture(scope="module")
def covered() -> Iterator[tuple[Inputs, tuple[CoverItem, ...]]]:
    """The inputs of a request, and a cover of whole summaries."""
    first, *higher = small_levels(messages=40, sources=9)
    levels = (first.model_copy(update={"tokens": None, "max_tokens": 400}), *higher)
    chosen = Settings(tree=TreeSettings(background=False, levels=levels))
    with open_memory(None, settings=chosen, clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages(conversation(120), at=NOW)
        session.flush()
        request = Request(
            track=session.core.track,
            query="",
            max_tokens=4000,
            system=None,
            tools=(),
            model=ModelProfile(),
            view="default",
        )
        inputs = read_inputs(session.core.runtime, "s", request)
        yield inputs, cover_of_levels(inputs, border=200, cap=100_000, levels=(1,))


def forms(inputs: Inputs, item: CoverItem) -> Choice:
    assert isinstance(item, Node)
    return CoverParts(inputs).choice(inputs.library.summaries[item.id])


def size(inputs: Inputs, items: tuple[CoverItem, ...]) -> int:
    return tokens_of(items, gap_tokens=CoverParts(inputs).gap_tokens)


def shown(items: tuple[CoverItem, ...]) -> list[str]:
    return [item.resolution if isinstance(item, Node) else type(item).__name__ for item in items]


def test_the_oldest_are_told_more_briefly_one_by_one_and_only_as_many_as_it_takes(
    covered: tuple[Inputs, tuple[CoverItem, ...]],
) -> None:
    inputs, items = covered
    assert shown(items) == ["whole"] * len(items)
    assert len(items) >= 4
    assert all([form.resolution for form in forms(inputs, item).forms][1:] == ["short", "whole"] for item in items)
    saved = [item.tokens - forms(inputs, item).readable.tokens for item in items if isinstance(item, Node)]
    rest = len(items) - 2
    for less in (1, saved[0]):
        assert shown(lowered_cover(inputs, items, less=less)) == ["short", "whole", *["whole"] * rest]
    for less in (saved[0] + 1, saved[0] + saved[1]):
        lowered = lowered_cover(inputs, items, less=less)
        assert shown(lowered) == ["short", "short", *["whole"] * rest]
        assert size(inputs, items) - size(inputs, lowered) == saved[0] + saved[1]
    lowered = lowered_cover(inputs, items, less=sum(saved) + 1)
    assert shown(lowered) == ["headline", *["short"] * (rest + 1)]


def test_where_lines_are_too_many_as_few_of_the_oldest_as_can_be_stand_in_one(
    covered: tuple[Inputs, tuple[CoverItem, ...]],
) -> None:
    inputs, items = covered
    least = sum(forms(inputs, item).briefest.tokens for item in items)
    lowered = lowered_cover(inputs, items, less=size(inputs, items) - least)
    assert shown(lowered) == ["headline"] * len(items)
    joined = lowered_cover(inputs, items, less=size(inputs, items) - least + 1)
    assert isinstance(joined[0], Joint)
    assert size(inputs, joined) <= least - 1
    assert shown(joined[1:]) == ["headline"] * (len(items) - 1 - (len(joined[0].ids) - 1))
    assert len(joined) > 2
    for most in range(40, least, 15):
        lowered = lowered_cover(inputs, items, less=size(inputs, items) - most)
        assert size(inputs, lowered) <= most or len(lowered) == 1
        assert lowered[-1].last_seq == items[-1].last_seq


@pytest.mark.parametrize("less", [0, -5])
def test_nothing_changes_where_nothing_is_missing(covered: tuple[Inputs, tuple[CoverItem, ...]], less: int) -> None:
    inputs, items = covered
    assert lowered_cover(inputs, items, less=less) == items
