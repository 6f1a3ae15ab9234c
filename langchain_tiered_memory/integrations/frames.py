"""A memory's results as data frames: facts, hits, outcomes, ledgers and costs, one row each."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable  # noqa: TC003 - read at the border
from enum import Enum
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.errors import InvalidInputError, SettingsError

if TYPE_CHECKING:
    import pandas as pd


@checked()
def to_frame(records: Iterable[object]) -> pd.DataFrame:
    """Return records of one kind as a pandas data frame: `to_frame(session.facts())`.

    Each field is a column. A field of a nested record is `name.field`, such as `guard.zone`. Enums become their values,
    and seconds since the epoch (`at`, `first_at`) become times in UTC.

    Args:
        records: Facts, hits, outcomes, entries, summaries, rows of `ledger()` or `costs().rows`, or other values of
            `langchain_tiered_memory.types` and `reports`.

    Raises:
        InvalidInputError: if something is not such a record.
        SettingsError: if pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - a package of the user's choice
    except ImportError as error:
        msg = "data frames need pandas: `pip install pandas`"
        raise SettingsError(msg) from error
    frame = pd.DataFrame([_row(one) for one in records])
    for name in frame.columns:
        if str(name).rpartition(".")[2].rpartition("_")[2] == "at":
            frame[name] = pd.to_datetime(frame[name], unit="s", utc=True)
    return frame


def _row(record: object) -> dict[str, Any]:
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        msg = f"a {type(record).__name__} is not a record: give what facts(), search(), outcomes() or ledger() return"
        raise InvalidInputError(msg)
    row: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            row |= {f"{field.name}.{name}": inner for name, inner in _row(value).items()}
        else:
            row[field.name] = value.value if isinstance(value, Enum) else value
    return row
