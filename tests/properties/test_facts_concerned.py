"""New facts are compared with the same older ones, whether all subjects are read or only those with a word in short."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.summaries.facts.supersession import near, words_to_seek

WORDS = ("crane", "quay", "permit", "ferry", "anchor", "the", "order")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """As much of a fact as decides with what it is compared."""

    kind: str
    seq: int
    subject: str
    by_model: bool = False


subjects = st.lists(st.sampled_from(WORDS), min_size=0, max_size=3).map(" ".join)
facts = st.builds(Named, kind=st.sampled_from(["decision", "value", "goal"]), seq=st.integers(1, 900), subject=subjects)


@settings(max_examples=60, deadline=None)
@given(st.lists(facts, min_size=1, max_size=400), st.lists(subjects, min_size=1, max_size=4), st.integers(300, 880))
def test_what_is_not_read_would_not_have_been_compared(older: list[Named], asked: list[str], newest_from: int) -> None:
    new = [Named(kind="value", seq=901, subject=subject) for subject in asked]
    newest = [one for one in older if one.seq > newest_from]
    words = words_to_seek(new, newest)
    read = newest + [one for one in older if one.seq <= newest_from and any(word in one.subject for word in words)]
    assert sorted(map(repr, near(new, read))) == sorted(map(repr, near(new, older)))
