"""The sync and the async form of every verb that does I/O, with the same parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from langchain_tiered_memory.memory import Run, Session, TieredMemory

_WITHOUT_IO = {
    TieredMemory: {"session", "run", "subscribe"},  # handles and a listener: they touch nothing
    Session: {"window_use"},  # what this process remembers
    Run: set[str](),
}


def verbs(interface: type) -> dict[str, Any]:
    """Public methods of an interface."""
    return {
        name: member
        for name, member in inspect.getmembers(interface, callable)
        if not name.startswith("_") and any(name in vars(one) for one in interface.__mro__[:-1])
    }


@pytest.mark.parametrize("interface", [TieredMemory, Session, Run])
def test_every_verb_that_does_io_has_its_twin(interface: type) -> None:
    public = verbs(interface)
    sync = {name for name, member in public.items() if not inspect.iscoroutinefunction(member)}
    asynchronous = set(public) - sync
    assert {f"a{name}" for name in sync - _WITHOUT_IO[interface]} == asynchronous


@pytest.mark.parametrize("interface", [TieredMemory, Session, Run])
def test_twins_take_the_same_parameters_and_give_the_same(interface: type) -> None:
    public = verbs(interface)
    for name, member in public.items():
        twin = public.get(f"a{name}")
        if twin is None:
            continue
        one, other = inspect.signature(member), inspect.signature(twin)
        assert one.parameters == other.parameters, name
        assert one.return_annotation == other.return_annotation, name


@pytest.mark.parametrize("interface", [TieredMemory, Session, Run])
def test_every_public_verb_says_what_it_does(interface: type) -> None:
    assert [name for name, member in verbs(interface).items() if not inspect.getdoc(member)] == []


def test_both_kinds_of_with_close_a_memory() -> None:
    assert isinstance(inspect.getattr_static(TieredMemory, "__exit__"), type(lambda: None))
    assert inspect.iscoroutinefunction(TieredMemory.__aexit__)
