"""The one check of arguments at the public border, built from the verbs' signatures.

A verb's annotations say what it accepts. `types/arguments.py` has types for what a plain type cannot say. The check
uses pydantic, is built when a verb is first called, and costs about ten microseconds per call. It refuses a wrong
argument before anything is read or written, and names the argument, the value and what it must be. It accepts what
Python users treat as the same: an `int` for a `float`, any iterable for several values, subclasses. One text, one
mapping or one message is never several.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial, wraps
from reprlib import Repr
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, PlainValidator, TypeAdapter, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from langchain_tiered_memory.errors import SHOWN_CHARACTERS, ArgumentError, TieredMemoryError
from langchain_tiered_memory.types.arguments import MOST, Such

Verb = TypeVar("Verb", bound=Callable[..., Any])
Interface = TypeVar("Interface", bound=type)

_ONE = (str, bytes, bytearray, memoryview, Mapping, BaseModel)
"""Types that can be iterated but count as one value."""
_SEVERAL = (list, tuple, set, frozenset, Sequence, Iterable, Collection)
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = SHOWN_CHARACTERS


def checked(error: type[TieredMemoryError] = ArgumentError) -> Callable[[Verb], Verb]:
    """Make a public function or method check its arguments.

    Args:
        error: The error to raise. It is `SettingsError` if the function sets something up.
    """

    def with_check(verb: Verb) -> Verb:
        return cast("Verb", _with_check(verb, error))

    return with_check


def checked_verbs(interface: Interface) -> Interface:
    """Make each public method that a class itself defines check its arguments, including methods added later."""
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
    """Names that a module imports only on request (PEP 562)."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        try:
            return getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None


class _Border:
    """What one verb accepts. Its annotations are read at its first call, and must exist at run time.

    Args:
        verb: The function.
        error: The error to raise for anything else.
    """

    def __init__(self, verb: Callable[..., Any], error: type[TieredMemoryError]) -> None:
        self._verb = verb
        self._error = error

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self._verb)

    @cached_property
    def _adapters(self) -> Mapping[str, TypeAdapter[Any]]:
        parameters = self._signature.parameters
        hints = {name: one.annotation for name, one in parameters.items() if one.annotation is not one.empty}
        module = sys.modules[self._verb.__module__]
        read = get_type_hints(
            types.SimpleNamespace(__annotations__=hints), vars(module), _ReadLater(module), include_extras=True
        )
        for name, one in parameters.items():
            if one.kind == one.VAR_KEYWORD:
                (named,) = get_args(read.pop(name))  # `Unpack` of a `TypedDict`
                read |= get_type_hints(named, include_extras=True)
        return {name: TypeAdapter(_strict(hint)) for name, hint in read.items()}

    def taken(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in the form that the verb expects."""
        try:
            bound = self._signature.bind(*args, **named)
        except TypeError as error:
            own = [one for name, one in self._signature.parameters.items() if name not in ("self", "cls")]
            bare = [one.replace(annotation=one.empty) for one in own]
            takes = self._signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
            said = f"{error}; it takes {takes}"
        else:
            several = (one.name for one in self._signature.parameters.values() if one.kind == one.VAR_KEYWORD)
            changes = bound.arguments.get(next(several, ""), {})
            unknown = ", ".join(repr(one) for one in changes if one not in self._adapters)
            said = unknown and f"there is no argument {unknown}; known are {', '.join(self._adapters)}"
            said = said or _put_in_form(self._adapters, bound.arguments) or _put_in_form(self._adapters, changes)
            if not said:
                return bound.args, bound.kwargs
        owner, _, name = self._verb.__qualname__.rpartition(".")
        msg = f"{owner if name == '__init__' else name}: {said}"
        raise self._error(msg)


def checked_fields(kind: type, values: Mapping[str, Any], error: type[TieredMemoryError]) -> dict[str, Any]:
    """The values for the fields of a class that is not a record of ours, in the form that they expect.

    Args:
        kind: The class. Fields of its bases are not checked.
        values: Values by name. Those that the class does not define stay as they are.
        error: The error to raise for a value that cannot be used.
    """
    adapters, taken = _own_adapters(kind), dict(values)
    said = _put_in_form(adapters, taken)
    if said:
        msg = f"{kind.__name__}: {said}"
        raise error(msg)
    return taken


def _put_in_form(adapters: Mapping[str, TypeAdapter[Any]], values: dict[str, Any]) -> str:
    """Convert named values to their expected form. Returns what is wrong, or an empty text."""
    for name in [one for one in values if one in adapters]:
        try:
            values[name] = adapters[name].validate_python(values[name])
        except ValidationError as error:
            return _told(name, error)
    return ""


@cache
def _own_adapters(kind: type) -> Mapping[str, TypeAdapter[Any]]:
    own = types.SimpleNamespace(__annotations__=inspect.get_annotations(kind))
    try:
        hints = get_type_hints(own, vars(sys.modules[kind.__module__]), include_extras=True)
    except NameError:  # a name for type checkers alone: a value that a verb made, and nobody writes by hand
        return {}
    named = {name: hint for name, hint in hints.items() if not name.startswith(("_", "model_config"))}
    return {name: TypeAdapter(_strict(hint)) for name, hint in named.items()}


def _told(name: str, error: ValidationError) -> str:
    """What is wrong with a value, and what it must be. In a list, the element that does not fit is named."""
    faults = error.errors(include_url=False)
    places = [tuple(one for one in fault["loc"] if isinstance(one, int)) for fault in faults]
    place = max(places, key=len)
    here = [fault for fault, one in zip(faults, places, strict=True) if one == place]
    said = [fault.get("ctx", {"wanted": fault["msg"].removeprefix("Input should be ")}) for fault in here]
    wanted = " or ".join(dict.fromkeys(one["wanted"] if "wanted" in one else one["expected"] for one in said))
    value = next((one["instead"] for one in said if "instead" in one), here[0]["input"])
    advice = next((one["advice"] for one in said if one.get("advice")), "")
    return f"{name}{''.join(f'[{one}]' for one in place)} must be {wanted}, not {_SHOWN.repr(value)}{advice}"


def _strict(hint: Any) -> Any:  # noqa: ANN401 - any annotation
    """An annotation for pydantic to check. Only values that Python users treat as the same are converted.

    Raises:
        TypeError: if this module does not know how to check it.
    """
    plain, inner = get_origin(hint) or hint, [one for one in get_args(hint) if one is not ...]
    if plain is Annotated:
        checks = [WrapValidator(partial(_such, one)) for one in inner[1:] if isinstance(one, Such)]
        return Annotated[(_strict(inner[0]), *checks)] if checks else _strict(inner[0])
    if plain in (Union, types.UnionType):
        kinds = [_strict(one) for one in inner]
        return Any if Any in kinds else Annotated[Union[tuple(kinds)], Field(union_mode="left_to_right")]  # noqa: UP007
    if plain is Literal:
        return hint
    if plain in _SEVERAL:
        element = _strict(inner[0]) if inner else Any
        if element is Any and plain is Iterable:
            return Annotated[Any, PlainValidator(_iterable)]
        return Annotated[types.GenericAlias(list, (element,)), WrapValidator(_listed)]
    return _strict_class(plain)


def _strict_class(plain: Any) -> Any:  # noqa: ANN401 - as above
    if plain in (Any, object) or getattr(plain, "_is_protocol", False):
        return Any  # what takes it asks for the methods that it needs
    if isinstance(plain, type) and issubclass(plain, dict):  # a `TypedDict` too
        plain = Mapping
    if plain in _PLAIN:
        return Annotated[Any, PlainValidator(_PLAIN[plain])]
    if not isinstance(plain, type):
        msg = f"an argument that is checked at the border cannot be annotated with {plain!r}"
        raise TypeError(msg)
    wanted = f"{'an' if plain.__name__[0] in 'AEIO' else 'a'} {plain.__name__}"
    return Annotated[Any, PlainValidator(partial(_instance, plain, wanted))]


def _refuse(wanted: str, **more: object) -> NoReturn:
    code = "refused"
    raise PydanticCustomError(code, "must be {wanted}", {"wanted": wanted, **more})


def _such(mark: Such, value: object, inner: Callable[[object], Any]) -> object:
    """A value of a type that allows only some values."""
    try:
        found = inner(value)
    except ValidationError as error:
        if any(isinstance(place, int) for fault in error.errors(include_url=False) for place in fault["loc"]):
            raise
    else:
        if mark.fits(found):
            return found
    _refuse(mark.wanted, **({"instead": type(value)} if mark.is_secret else {}))


def _iterable(value: object) -> object:
    if isinstance(value, _ONE) or not isinstance(value, Iterable):
        _refuse("a list", advice=": put it in a list")
    return value


def _listed(value: object, inner: Callable[[object], Any]) -> object:
    """Several values as a list, so that its elements can be checked."""
    return inner(list(cast("Iterable[Any]", _iterable(value))))


def _instance(kind: Any, wanted: str, value: object) -> object:  # noqa: ANN401 - a class, or one of typing's
    """An object of a class. A record of ours is checked field by field."""
    if not isinstance(value, kind):
        _refuse(wanted)
    if dataclasses.is_dataclass(kind):
        adapters = _own_adapters(cast("type", kind))
        said = _put_in_form(adapters, {name: getattr(value, name) for name in adapters})
        if said:
            _refuse(wanted, advice=f": {said}")
    return value


def _number(value: object, wanted: str = "a whole number") -> int:
    if not isinstance(value, bool) and isinstance(value, numbers.Integral) and abs(int(value)) < MOST:
        return int(value)
    _refuse(wanted)


def _real(value: object) -> float:
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral) and math.isfinite(value):
        return float(value)
    return _number(value, "a finite number")


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    _refuse("bytes")


_PLAIN: Mapping[object, Callable[[Any], object]] = {
    type(None): partial(_instance, type(None), "None"),
    str: partial(_instance, str, "a string"),
    bytes: _bytes,
    bool: partial(_instance, bool, "True or False"),
    Mapping: partial(_instance, Mapping, "a dict"),
    Callable: partial(_instance, Callable, "a function"),
    int: _number,
    float: _real,
}
