"""Values of a file together with where they stand, so that an error can say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from langchain_tiered_memory.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A JSON value and its place: `FILE:LINE`, or `FILE` with a path inside the document."""

    place: str
    value: Any

    def at(self, key: str) -> Located:
        """The member `key`, which must be there.

        Raises:
            InvalidInputError: when it is not, or this is no object.
        """
        if not isinstance(self.value, dict):
            fail(self.place, f"expected an object, found {type(self.value).__name__}")
        if key not in self.value:
            fail(self.place, f"`{key}` is missing")
        return Located(place=f"{self.place} {key}", value=self.value[key])

    def items(self) -> list[Located]:
        """The items of a list.

        Raises:
            InvalidInputError: when this is none.
        """
        if not isinstance(self.value, list):
            fail(self.place, f"expected a list, found {type(self.value).__name__}")
        return [Located(place=f"{self.place}[{index}]", value=item) for index, item in enumerate(self.value)]

    def text(self, key: str) -> str:
        """The member `key` as text; a number is taken as one.

        Raises:
            InvalidInputError: when it is missing or something else.
        """
        found = self.at(key)
        if isinstance(found.value, bool) or not isinstance(found.value, str | int | float):
            fail(found.place, f"expected a text, found {type(found.value).__name__}")
        return str(found.value)

    def get(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """The member `key`, or `None`."""
        return self.value.get(key) if isinstance(self.value, dict) else None


def fail(place: str, what: str) -> NoReturn:
    """Raise the error for `place`.

    Raises:
        InvalidInputError: always.
    """
    msg = f"{place}: {what}"
    raise InvalidInputError(msg)
