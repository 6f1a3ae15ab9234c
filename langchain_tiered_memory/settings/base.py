"""What every group of settings has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_tiered_memory.errors import SettingsError, explain_validation


class Frozen(BaseModel):
    """Validated once, then frozen; an unknown field is an error.

    Raises:
        SettingsError: when a value cannot be used; the message names the setting and what it must be.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    if not TYPE_CHECKING:  # type checkers read the fields

        def __init__(self, **values: Any) -> None:  # noqa: ANN401 - pydantic says of what type
            try:
                super().__init__(**values)
            except ValidationError as error:
                fields = ", ".join(type(self).model_fields)
                msg = f"{type(self).__name__}: {explain_validation(error, fields)}"
                raise SettingsError(msg) from None
