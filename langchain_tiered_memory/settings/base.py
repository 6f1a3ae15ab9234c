"""What every group of settings has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Validated once, then frozen; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
