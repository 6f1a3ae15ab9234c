"""What all groups of settings share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from langchain_tiered_memory.errors import SettingsError, explain_validation
from langchain_tiered_memory.types.arguments import MOST, as_paths, is_path


def _paths(given: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever a user sets
    several = [given] if is_path(given) else given
    if not isinstance(several, list | tuple) or not all(map(is_path, several)):
        msg = "must be a path, or a list of paths"
        raise ValueError(msg)
    return as_paths(several)


Paths: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_paths)]
"""One or several paths, as a verb accepts them."""


class Frozen(BaseModel):
    """Validated once, then frozen. An unknown field is an error.

    Raises:
        SettingsError: if a value cannot be used. The message names the setting and what it must be.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers_are_numbers(cls, given: Any, about: ValidationInfo) -> Any:  # noqa: ANN401 - whatever a user sets
        """Refuse `True` as a number, and numbers that are too large for a database."""
        wanted = cls.model_fields[about.field_name or ""].annotation
        if isinstance(given, bool) and bool not in (wanted, *get_args(wanted)):
            msg = "must be something other than True or False"
            raise ValueError(msg)
        if isinstance(given, int) and abs(given) >= MOST:
            msg = "must be below 2**63"
            raise ValueError(msg)
        return given

    if not TYPE_CHECKING:  # type checkers read the fields

        def __init__(self, **values: Any) -> None:  # noqa: ANN401 - pydantic says of what type
            try:
                super().__init__(**values)
            except ValidationError as error:
                fields = ", ".join(type(self).model_fields)
                msg = f"{type(self).__name__}: {explain_validation(error, fields)}"
                raise SettingsError(msg) from None
