from dataclasses import replace

from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.summaries.rendering import summary_block
from langchain_tiered_memory.summaries.shown_facts import shown_facts
from langchain_tiered_memory.summaries.tree.cover import Node
from langchain_tiered_memory.types.records import Fact, FactKind, Summary, SummaryState


def fact(text: str, *, seq: int, subject: str = "", kind: FactKind = "number") -> Fact:
    return Fact(kind=kind, text=text, seq=seq, at=0.0, subject=subject, by="user")


def summary(name: str, first: int, facts: tuple[Fact, ...], *, text: str = "prose") -> Summary:
    return replace(_BLANK, id=name, first_seq=first, last_seq=first + 9, facts=facts, text=text)


def words(text: str) -> int:
    return len(text.split())


_BLANK = Summary(
    id="", level=1, strategy="detailed", state=SummaryState.ACTIVE, first_seq=1, last_seq=10, first_at=0.0,
    last_at=0.0, entry_count=10, track=None, sources=(), source_digest="", source_tokens=99, parent_id=None,
)  # fmt: skip
_OLD = fact("The port is 8080.", seq=1, subject="port")
_NEW = fact("Actually the port is 8443.", seq=11, subject="port")
_OTHER = fact("The rent is 700 euros.", seq=2, subject="rent")


def test_a_value_that_a_later_summary_takes_back_is_not_shown() -> None:
    shown = shown_facts([summary("a", 1, (_OLD, _OTHER)), summary("b", 11, (_NEW,))], room=99, count_text=words)
    assert shown == {"a": (1,), "b": (0,)}


def test_of_what_stood_already_only_what_was_taken_back_goes() -> None:
    both = [summary("a", 1, (_OLD, _OTHER)), summary("b", 11, (_NEW,))]
    assert shown_facts(both, room=0, count_text=words, standing={"a": (0, 1)}) == {"a": (1,), "b": ()}


def test_what_the_prose_says_is_not_said_again() -> None:
    told = summary("a", 1, (_OLD, _OTHER), text="- as to the rent, 700 euros was named")
    assert shown_facts([told], room=99, count_text=words) == {"a": (0,)}


def test_an_index_that_a_summary_made_anew_lacks_is_passed_over() -> None:
    assert shown_facts([summary("a", 1, (_OLD,))], room=9, count_text=words, standing={"a": (0, 7)}) == {"a": (0,)}
    assert "8080" in summary_block(summary("a", 1, (_OLD,)), (0, 7))


def test_a_plan_keeps_which_facts_it_shows() -> None:
    node = Node(id="a", level=1, first_seq=1, last_seq=10, entry_count=10, tokens=5, facts=(0, 2))
    plan = ViewPlan(border=10, tail_from=11, items=(node, replace(node, id="b", facts=None)))
    assert ViewPlan.from_json(plan.to_json()) == plan
