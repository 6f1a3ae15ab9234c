"""What an editor shows of a public name tells what each argument and setting is, and in which unit."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast, get_args

import pytest
from pydantic import BaseModel

import langchain_tiered_memory
from langchain_tiered_memory import Session, Settings, TieredMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNITS = re.compile(
    r"\b(tokens?|seconds|percent|shares?|bytes|words|points|cosine|temperature|permissions|"
    r"(user )?messages|entries|summaries|levels?|outcomes|tasks|checkpoints|files|attempts|failures|calls)\b",
    re.IGNORECASE,
)


def verbs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions that users call; a twin's text is its sync form's."""
    for name in langchain_tiered_memory.__all__:
        member = getattr(langchain_tiered_memory, name)
        if inspect.isfunction(member) and not (inspect.getdoc(member) or "").startswith("See `"):
            yield name, member
    for kind in (TieredMemory, Session):
        for name, member in inspect.getmembers(kind, callable):
            if not name.startswith("_") and not (inspect.getdoc(member) or "").startswith("See `"):
                yield f"{kind.__name__}.{name}", member


VERBS = dict(verbs())


def settings() -> Iterator[tuple[str, type[BaseModel], str]]:
    """Each setting that is a number, with the group that has it."""
    groups: list[type[BaseModel]] = [Settings]
    for group in groups:  # it grows
        for name, field in group.model_fields.items():
            parts = list(_parts(field.annotation))
            groups += [one for one in parts if issubclass(one, BaseModel) and one not in groups]
            if {int, float} & set(parts):
                yield f"{group.__name__}.{name}", group, name


def _parts(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for one in get_args(annotation):
        yield from _parts(one)


def text_of(group: type[BaseModel], name: str) -> str:
    """The text below a field in the source of the class that defines it."""
    owner = next(one for one in group.__mro__ if name in inspect.get_annotations(one))
    body = cast("ast.ClassDef", ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]).body
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) == name and isinstance(text, ast.Expr):
            return str(ast.literal_eval(text.value))
    return ""


SETTINGS = {name: (group, field) for name, group, field in settings()}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_what_each_argument_is(name: str) -> None:
    text = inspect.getdoc(VERBS[name]) or ""
    taken = [one for one in inspect.signature(VERBS[name]).parameters if one not in ("self", "cls")]
    told = set(re.findall(r"^    \*{0,2}(\w+):", text.partition("Args:")[2], re.MULTILINE))
    assert [one for one in taken if one not in told] == []


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_takes_and_gives_no_bare_any(name: str) -> None:
    signature = inspect.signature(VERBS[name])
    kinds = [one.annotation for name, one in signature.parameters.items() if name not in ("self", "cls")]
    kinds.append(signature.return_annotation)
    assert [kind for kind in kinds if kind in (Any, "Any", inspect.Parameter.empty)] == []


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_a_number_says_of_what(name: str) -> None:
    assert UNITS.search(text_of(*SETTINGS[name]))
