"""Which items and namespaces a call means: filters over values, and conditions on the labels of a namespace."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_tiered_memory.items.values import Namespace

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_ANY_LABEL = "*"


def is_meant(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value has what a filter asks for; `a.b` is the `b` of its `a`, where it has no `a.b`.

    Raises:
        InvalidInputError: for an operator that nobody knows.
    """
    return all(_holds(_at(value, key), condition) for key, condition in wanted.items())


def _at(value: object, key: str) -> Any:  # noqa: ANN401 - any JSON
    if not isinstance(value, dict) or key in value:
        return value.get(key) if isinstance(value, dict) else None
    first, dot, rest = key.partition(".")
    return _at(value.get(first), rest) if dot else None


def _holds(value: Any, condition: Any) -> bool:  # noqa: ANN401 - any JSON
    if isinstance(condition, dict):
        if any(str(key).startswith("$") for key in condition):
            return all(_compares(value, how, other) for how, other in condition.items())
        return isinstance(value, dict) and all(_holds(value.get(key), inner) for key, inner in condition.items())
    if isinstance(condition, list | tuple):
        if not isinstance(value, list) or len(value) != len(condition):
            return False
        return all(_holds(one, inner) for one, inner in zip(value, condition, strict=True))
    return bool(value == condition)


def _compares(value: Any, how: str, other: Any) -> bool:  # noqa: ANN401 - any JSON
    if how == "$eq":
        return bool(value == other)
    if how == "$ne":
        return bool(value != other)
    if how not in _ORDERS:
        msg = f"a filter has the operator {how!r}: use one of $eq, $ne, {', '.join(_ORDERS)}"
        raise InvalidInputError(msg)
    for kind in (float, str):  # what no order is known for is not meant
        try:
            return _ORDERS[how](kind(value), kind(other)) if value is not None else False
        except (TypeError, ValueError):
            continue
    return False


def has_labels(namespace: Namespace, labels: Sequence[str], *, at_end: bool) -> bool:
    """Whether a namespace begins, or ends, with these labels; `*` stands for any one."""
    if len(labels) > len(namespace):
        return False
    there = namespace[len(namespace) - len(labels) :] if at_end else namespace[: len(labels)]
    return all(wanted in (_ANY_LABEL, label) for wanted, label in zip(labels, there, strict=True))
