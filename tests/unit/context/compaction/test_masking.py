from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.masking import Mask, masks
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.pieces import OVERHEAD_TOKENS
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.types.records import Entry

LOG = "\n".join(f"Line {number}: the parcel {number * 7} has arrived in Bergen." for number in range(800))


def output(seq: int, text: str = "", *, tokens: int = 500, pinned: bool = False) -> Entry:
    """The result of a call of its own, with a text of its own where none is given."""
    return Entry(
        seq=seq,
        id=f"m{seq}",
        role="tool",
        text=text or f"output {seq} ".ljust(tokens * 4, "x"),
        payload="",
        digest=f"d{seq}",
        tokens=tokens,
        at=0.0,
        name=None,
        track="main",
        kind=None,
        task=None,
        calls=(),
        answers=f"call-{seq}",
        group=seq,
        pinned=pinned,
        revision=0,
        summary_id=None,
    )


def said(seq: int, *, tokens: int = 5000) -> Entry:
    return replace(output(seq, tokens=tokens), role="user", answers=None)


def masked(
    entries: Sequence[Entry],
    *,
    free: int = 10**9,
    unseen_from: int = 10**9,
    twins: Mapping[int, str] | None = None,
    **more: Any,
) -> tuple[Mask, ...]:
    return masks(
        as_groups(entries),
        unseen_from=unseen_from,
        already=more.pop("already", frozenset()),
        tokens_to_free=free,
        twins=twins or {},
        **more,
    )


def seqs(found: Sequence[Mask]) -> list[tuple[int, str]]:
    return [(mask.seq, mask.reason) for mask in found]


def test_the_cheapest_losses_come_first() -> None:
    same = "the same text ".ljust(2000, "y")
    entries = [
        output(1, tokens=3000),
        output(2),
        output(3, same),
        output(4),
        output(5, same),
        output(6, tokens=2001),
    ]
    found = masked(entries, twins={2: "read a.py", 4: "read a.py", 6: "read b.py"})
    assert seqs(found) == [(3, "repeated"), (2, "replaced"), (1, "giant"), (6, "giant")]


def test_giants_leave_oldest_first_and_only_until_enough_is_freed() -> None:
    entries = [output(seq, tokens=2500) for seq in (1, 2, 3)]
    assert seqs(masked(entries, free=2500)) == [(1, "giant"), (2, "giant")]
    assert seqs(masked(entries, free=2400)) == [(1, "giant")]


def test_what_the_model_has_not_read_yet_stays() -> None:
    same = "the same text ".ljust(2000, "y")
    entries = [output(1, same), output(2), output(3, same), output(4, tokens=3000), output(5)]
    found = masked(entries, unseen_from=2, twins={2: "look", 5: "look"})
    assert seqs(found) == [(1, "repeated")]


def test_messages_pins_and_small_outputs_stay() -> None:
    entries = [said(1), output(2, tokens=3000, pinned=True), output(3, "ok", tokens=3), output(4, "ok", tokens=3)]
    assert masked(entries) == ()


def test_an_image_is_no_text_to_be_freed() -> None:
    assert masked([output(1, "[image: image/png, 12 kB]", tokens=3000)]) == ()


def test_what_is_masked_already_is_not_masked_again_and_makes_nothing_a_repeat() -> None:
    same = "the same text ".ljust(2000, "y")
    entries = [output(1, same), output(2, same), output(3, tokens=3000)]
    assert seqs(masked(entries, already=frozenset({2, 3}))) == []
    assert seqs(masked(entries, already=frozenset({3}))) == [(1, "repeated")]


def test_a_look_is_replaced_by_a_later_one_even_if_that_is_masked() -> None:
    assert seqs(masked([output(1), output(2)], twins={1: "k", 2: "k"}, already=frozenset({2}))) == [(1, "replaced")]


def test_a_batch_that_would_not_be_worth_it_is_not_begun() -> None:
    entries = [output(1, tokens=2500)]
    worth = 2500 - NUMBERS.least_readable_tokens - OVERHEAD_TOKENS
    assert masked(entries, free=100, least_tokens=worth + 1) == ()
    assert [mask.frees_tokens for mask in masked(entries, free=100, least_tokens=worth)] == [worth]


def test_a_small_need_is_filled_up_to_a_whole_batch() -> None:
    entries = [output(seq, tokens=2500) for seq in (1, 2, 3)]
    assert len(masked(entries, free=1, least_tokens=3000)) == 2


def test_where_nothing_has_to_be_freed_nothing_is_masked() -> None:
    assert masked([output(1), output(2), output(3, tokens=3000)], twins={1: "k", 2: "k"}, free=0) == ()


_outputs = st.lists(st.tuples(st.integers(0, 4000), st.sampled_from(["", "a", "b"]), st.booleans()), max_size=20).map(
    lambda made: [
        output(seq, text.ljust(tokens * 4, "z") if text else "", tokens=tokens, pinned=pinned)
        for seq, (tokens, text, pinned) in enumerate(made, 1)
    ]
)
_some_seqs = st.frozensets(st.integers(1, 20))
_twins = st.dictionaries(st.integers(1, 20), st.sampled_from("kl"), max_size=10)


_needs = st.tuples(st.integers(-10, 20_000), st.integers(0, 5000))


@given(_outputs, st.integers(1, 25), _some_seqs, _twins, _needs)
def test_a_batch_is_either_worth_it_and_no_larger_than_needed_or_empty(
    entries: list[Entry], unseen: int, already: frozenset[int], twins: dict[int, str], needs: tuple[int, int]
) -> None:
    free, least = needs
    found = masked(entries, free=free, unseen_from=unseen, already=already, twins=twins, least_tokens=least)
    everything = masked(entries, free=10**9, unseen_from=unseen, already=already, twins=twins)
    freed = sum(mask.frees_tokens for mask in found)
    possible = sum(mask.frees_tokens for mask in everything)
    assert len({mask.seq for mask in found}) == len(found)
    assert found == everything[: len(found)]
    assert all(mask.seq < unseen and mask.seq not in already and mask.frees_tokens > 0 for mask in found)
    assert not any(entries[mask.seq - 1].pinned for mask in found)
    if free <= 0 or possible < least:
        assert found == ()
    else:
        assert freed >= min(max(free, least), possible)
        assert not found or freed - found[-1].frees_tokens < max(free, least)


@given(_outputs)
def test_of_outputs_that_say_the_same_the_latest_is_never_a_repeat(entries: list[Entry]) -> None:
    latest = {entry.text: entry.seq for entry in entries}
    repeated = [mask.seq for mask in masked(entries) if mask.reason == "repeated"]
    assert not set(repeated) & set(latest.values())
