"""Flows in a source tree: functions that are generators of requests, and those of them that may ever wait.

A flow may wait where it yields a request that the driver cannot answer on the spot (a model's call, a pause, a step of
the host), where it drives or delegates to a flow that it was handed, or where it delegates to a flow of a name that
may. Names are compared, not bindings, and what was handed over is taken for one that waits: an upper bound.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_FLOW = "Flow"
_AT_ONCE = {"Work"}
"""Requests that the driver answers itself without waiting; there are such in older checkouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flows:
    """How many flows there are."""

    generators: int
    waiting: int


def count_flows(trees: Iterable[ast.Module]) -> Flows:
    """The functions annotated as `Flow[...]` that yield, and how many of them may wait."""
    listed = list(trees)
    requests = _waiting_requests(listed)
    flows = [node for tree in listed for node in _functions(tree) if _is_flow(node) and _yields(node)]
    delegates = [(node, _delegated(node)) for node in flows]
    at_once = [node for node in flows if not _waits_itself(node, requests)]
    waiting = {node.name for node in flows if node not in at_once}
    grown = True
    while grown:
        more = {node.name for node, called in delegates if called & waiting} - waiting
        waiting |= more
        grown = bool(more)
    never = sum(node in at_once and not called & waiting for node, called in delegates)
    return Flows(generators=len(flows), waiting=len(flows) - never)


def _waiting_requests(trees: Iterable[ast.Module]) -> set[str]:
    """Names of the classes that a flow may yield: the members of the alias in `Flow`, and what derives from them."""
    aliases: dict[str, ast.expr] = {}
    bases: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                aliases[node.target.id] = node.value
            elif isinstance(node, ast.ClassDef):
                bases[node.name] = {_last_name(base) for base in node.bases}
    found: set[str] = set()
    waiting = {_FLOW}
    while waiting:
        name = waiting.pop()
        found.add(name)
        if name in aliases:
            waiting |= {one.id for one in ast.walk(aliases[name]) if isinstance(one, ast.Name)} - found
    found &= bases.keys() - aliases.keys() - _AT_ONCE
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _is_flow(node: Function) -> bool:
    return isinstance(node.returns, ast.Subscript) and _last_name(node.returns.value) == _FLOW


def _yields(node: Function) -> bool:
    return any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own_nodes(node))


def _waits_itself(node: Function, requests: set[str]) -> bool:
    """Whether a function yields a request that waits or one of somebody else's, or all of a flow that it was handed."""
    for inner in _own_nodes(node):
        match inner:
            case ast.Yield(value=ast.Call(func=made)) if _last_name(made) not in requests:
                continue
            case ast.Yield(value=ast.Call() | ast.Name()) | ast.YieldFrom(value=ast.Name()):
                return True
            case _:
                continue
    return False


def _delegated(node: Function) -> set[str]:
    """Names of the functions that a function delegates to, those that stand in an argument included."""
    return {
        _last_name(call.func)
        for inner in _own_nodes(node)
        if isinstance(inner, ast.YieldFrom)
        for call in ast.walk(inner.value)
        if isinstance(call, ast.Call)
    }


def _own_nodes(node: Function) -> Iterator[ast.AST]:
    """What a function's own body has, without the functions in it."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        inner = waiting.pop()
        yield inner
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(inner))


def _last_name(node: ast.expr) -> str:
    """`name` of `name`, `room.name` and `name[...]`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inner):
            return _last_name(inner)
        case _:
            return ""
