"""The check of arguments at the public border: one, made from the signatures of the verbs.

A verb says by its annotations what it takes; `types/arguments.py` has words for what a type alone does not say. The
check is made when a verb is first called, and costs a few microseconds a call. What is wrong is refused before anything
is read or written, with the argument, what came, and what is wanted. What Python's users take for the same is taken:
an `int` for a `float`, any iterable where several are wanted, subclasses. One text, one mapping or one message is
never several.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property, wraps
from reprlib import Repr
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from langchain_tiered_memory.errors import ArgumentError, TieredMemoryError
from langchain_tiered_memory.types.arguments import MOST, Such

Verb = TypeVar("Verb", bound=Callable[..., Any])
Interface = TypeVar("Interface", bound=type)
Check = Callable[[Any], Any]
"""Gives a value as the verb is to have it, or raises `_Refused`."""

_ONE = (str, bytes, bytearray, memoryview, Mapping, BaseModel)
"""What can be iterated, and is one thing all the same."""
_SEVERAL = (list, tuple, set, frozenset, Sequence, Iterable, Collection)
_SHOWN_CHARACTERS = 80
"""Of a value that cannot be taken: enough to recognise it."""
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN_CHARACTERS


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    """A value that does not fit: what is wanted, what came, in which part of the argument, and what to do."""

    def __init__(self, wanted: str, value: object, place: str = "", *, advice: str = "") -> None:
        super().__init__()
        self.wanted = wanted
        self.value = value
        self.place = place
        self.advice = advice


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """What an annotation takes."""

    wanted: str
    """In words, as in "it must be ..."."""
    check: Check | None = None
    """`None`: it takes anything."""


def checked(error: type[TieredMemoryError] = ArgumentError) -> Callable[[Verb], Verb]:
    """Have a public function or method check its arguments.

    Args:
        error: What is raised; `SettingsError` where something is set up.
    """

    def with_check(verb: Verb) -> Verb:
        return cast("Verb", _with_check(verb, error))

    return with_check


def checked_verbs(interface: Interface) -> Interface:
    """Have each public method that a class itself defines check its arguments, those that are added later too."""
    for name, member in list(vars(interface).items()):
        if name.startswith("_") or not isinstance(member, types.FunctionType) or hasattr(member, "__wrapped__"):
            continue
        setattr(interface, name, _with_check(member, ArgumentError))
    return interface


def _with_check(verb: Callable[..., Any], error: type[TieredMemoryError]) -> Callable[..., Any]:
    border = _Border(verb, error)
    if inspect.iscoroutinefunction(verb):

        @wraps(verb)
        async def awaited(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - as the verb has them
            args, named = border.taken(args, named)
            return await verb(*args, **named)

        return awaited

    @wraps(verb)
    def called(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - as the verb has them
        args, named = border.taken(args, named)
        return verb(*args, **named)

    return called


class _ReadLater(dict[str, Any]):
    """Names that a module gives when it is asked (PEP 562): what it need not import to be imported."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None


class _Border:
    """What one verb takes; its annotations are read when it is first called, and must be there at run time.

    Args:
        verb: The function.
        error: What is raised for anything else.
    """

    def __init__(self, verb: Callable[..., Any], error: type[TieredMemoryError]) -> None:
        self._verb = verb
        self._error = error

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self._verb).parameters

    @cached_property
    def _placed(self) -> tuple[str, ...]:
        """Arguments that may be given by position."""
        return tuple(name for name, one in self._parameters.items() if one.kind == one.POSITIONAL_OR_KEYWORD)

    @cached_property
    def _required(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, one in self._parameters.items()
            if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        )

    @cached_property
    def _checks(self) -> Mapping[str, Check | None]:
        hints = {name: one.annotation for name, one in self._parameters.items() if one.annotation is not one.empty}
        module = sys.modules[self._verb.__module__]
        read = get_type_hints(
            types.SimpleNamespace(__annotations__=hints), vars(module), _ReadLater(module), include_extras=True
        )
        for name, one in self._parameters.items():
            if one.kind == one.VAR_KEYWORD:
                (named,) = get_args(read.pop(name))  # `Unpack` of a `TypedDict`
                read |= get_type_hints(named, include_extras=True)
        return {name: _kind_of(hint).check for name, hint in read.items()}

    def taken(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the verb is to have them."""
        placed = self._placed
        if len(args) > len(placed):
            given, so = (len(args) - 1, placed[1:]) if placed[:1] == ("self",) else (len(args), placed)
            self._refuse(f"{given} arguments came by position, and it takes {', '.join(so) or 'none'} so")
        by_place = [self._one(name, value) for name, value in zip(placed, args, strict=False)]
        by_name = {name: self._one(name, value) for name, value in named.items()}
        for name in self._required:
            if name not in by_name and name not in placed[: len(args)]:
                self._refuse(f"{name} is missing")
        return tuple(by_place), by_name

    def _one(self, name: str, value: object) -> object:
        checks = self._checks
        if name in checks:
            check = checks[name]
        elif name in self._placed:
            return value  # `self`
        else:
            self._refuse(f"it has no argument {name!r}, but {', '.join(checks) or 'none'}")
        try:
            return check(value) if check is not None else value
        except _Refused as refused:
            said = _told(name, refused)
        return self._refuse(said)

    def _refuse(self, said: str) -> NoReturn:
        owner, _, name = self._verb.__qualname__.rpartition(".")
        msg = f"{owner if name == '__init__' else name}: {said}"
        raise self._error(msg)


def checked_fields(kind: type, values: Mapping[str, Any], error: type[TieredMemoryError]) -> dict[str, Any]:
    """What the fields of a class that is no record of ours are given, as they are to have it.

    Args:
        kind: The class; what its bases define is not looked at.
        values: By name. Those that the class does not define stay as they are.
        error: What is raised for what cannot be taken.
    """
    taken = dict(values)
    checks = _own_checks(kind)
    for name in values.keys() & checks.keys():
        try:
            taken[name] = checks[name](values[name])
        except _Refused as refused:
            msg = f"{kind.__name__}: {_told(name, refused)}"
            raise error(msg) from None
    return taken


@cache
def _own_checks(kind: type) -> Mapping[str, Check]:
    own = types.SimpleNamespace(__annotations__=inspect.get_annotations(kind))
    try:
        hints = get_type_hints(own, vars(sys.modules[kind.__module__]), include_extras=True)
    except NameError:  # a name for type checkers alone: a value that a verb made, and nobody writes by hand
        return {}
    kinds = {name: _kind_of(hint) for name, hint in hints.items() if not name.startswith(("_", "model_config"))}
    return {name: one.check for name, one in kinds.items() if one.check is not None}


def _told(name: str, refused: _Refused) -> str:
    return f"{name}{refused.place} must be {refused.wanted}, not {_SHOWN.repr(refused.value)}{refused.advice}"


def _kind_of(hint: Any) -> _Kind:  # noqa: ANN401 - any annotation
    """What an annotation takes.

    Raises:
        TypeError: when this module does not know how to check it.
    """
    plain, inner = get_origin(hint) or hint, [one for one in get_args(hint) if one is not ...]
    if plain is Annotated:
        return _such(_kind_of(inner[0]), [one for one in inner[1:] if isinstance(one, Such)])
    if plain in (Union, types.UnionType):
        return _any_of([_kind_of(one) for one in inner])
    if plain is Literal:
        return _one_of(inner)
    if plain in _SEVERAL:
        return _several(_kind_of(inner[0]) if inner else _ANYTHING, as_given=plain is Iterable)
    return _kind_of_class(plain)


def _kind_of_class(plain: Any) -> _Kind:  # noqa: ANN401 - as above
    if plain in _PLAIN:
        return _PLAIN[plain]
    if isinstance(plain, type) and issubclass(plain, dict):  # a `TypedDict` too
        return _PLAIN[Mapping]
    if getattr(plain, "_is_protocol", False):
        return _ANYTHING  # what takes it asks for the methods that it needs
    if isinstance(plain, type):
        return _instance(plain)
    msg = f"an argument that is checked at the border cannot be annotated with {plain!r}"
    raise TypeError(msg)


def _number(value: object) -> int:
    if not isinstance(value, bool) and isinstance(value, numbers.Integral) and abs(int(value)) < MOST:
        return int(value)
    raise _Refused(_WHOLE, value)


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    wanted = "bytes"
    raise _Refused(wanted, value)


def _real(value: object) -> float:
    if isinstance(value, numbers.Integral):
        return _number(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    raise _Refused(_FINITE, value)


def _such(kind: _Kind, marks: Sequence[Such]) -> _Kind:
    """A kind of which some values are meant."""
    wanted = marks[-1].wanted if marks else kind.wanted
    inner = kind.check

    def check(value: object) -> object:
        try:
            found = inner(value) if inner is not None else value
        except _Refused as refused:
            if refused.place:
                raise
            raise _Refused(wanted, value) from None
        if all(mark.fits(found) for mark in marks):
            return found
        raise _Refused(wanted, type(value) if any(mark.is_secret for mark in marks) else value)

    return _Kind(wanted, check)


def _any_of(kinds: Sequence[_Kind]) -> _Kind:
    """One of several kinds. Of a list, the element that fits nowhere is named; advice is kept."""
    if any(kind.check is None for kind in kinds):
        return _ANYTHING
    wanted = " or ".join(dict.fromkeys(kind.wanted for kind in kinds))
    checks = [kind.check for kind in kinds if kind.check is not None]

    def check(value: object) -> object:
        inside: _Refused | None = None
        advice = ""
        for one in checks:
            try:
                return one(value)
            except _Refused as refused:
                inside = refused if refused.place else inside
                advice = advice or refused.advice
        raise inside or _Refused(wanted, value, advice=advice)

    return _Kind(wanted, check)


def _where(fits: Callable[[object], bool], wanted: str) -> _Kind:
    def check(value: object) -> object:
        if fits(value):
            return value
        raise _Refused(wanted, value)

    return _Kind(wanted, check)


def _one_of(values: Sequence[object]) -> _Kind:
    def fits(value: object) -> bool:
        return any(isinstance(value, type(one)) and value == one for one in values)

    return _where(fits, " or ".join(map(repr, values)))


def _several(element: _Kind, *, as_given: bool) -> _Kind:
    """Several of a kind: what is no sequence becomes a tuple, so that its elements can be looked at."""
    wanted = "a list" if element.check is None else f"a list (each {element.wanted})"

    def check(value: object) -> object:
        if isinstance(value, _ONE) or not isinstance(value, Iterable):
            raise _Refused(wanted, value, advice=": put it in a list")
        if element.check is None and as_given:
            return value
        found = value if isinstance(value, Sequence) else tuple(value)
        if element.check is None:
            return found
        taken = []
        for place, one in enumerate(found):
            try:
                taken.append(element.check(one))
            except _Refused as refused:
                raise _Refused(refused.wanted, refused.value, f"[{place}]{refused.place}") from None
        return taken

    return _Kind(wanted, check)


def _instance(kind: type) -> _Kind:
    """An object of a class; a record of ours is looked at field by field."""
    wanted = f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"

    def check(value: object) -> object:
        if not isinstance(value, kind):
            raise _Refused(wanted, value)
        for name, one in _own_checks(kind).items() if dataclasses.is_dataclass(kind) else ():
            try:
                one(getattr(value, name))
            except _Refused as refused:
                raise _Refused(refused.wanted, refused.value, f".{name}{refused.place}") from None
        return value

    return _Kind(wanted, check)


_WHOLE, _FINITE = "a whole number", "a finite number"
_ANYTHING = _Kind("anything")


def _exactly(kind: Any, wanted: str) -> _Kind:  # noqa: ANN401 - a class, or an abstract one of typing's
    return _where(lambda value: isinstance(value, kind), wanted)


_PLAIN: Mapping[object, _Kind] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    type(None): _exactly(type(None), "None"),
    str: _exactly(str, "a string"),
    bytes: _Kind("bytes", _bytes),
    bool: _exactly(bool, "True or False"),
    Mapping: _exactly(Mapping, "a dict"),
    Callable: _exactly(Callable, "a function"),
    int: _Kind(_WHOLE, _number),
    float: _Kind(_FINITE, _real),
}
