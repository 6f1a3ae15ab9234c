"""Windows of models, learnt from the errors of requests that did not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import packed, windows
from langchain_tiered_memory.sql.session_rows import insert_if_absent

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.database import Database

_MAX_NAME_CHARS = 200


@retried
@dataclass(frozen=True, slots=True)
class Windows:
    """Reads and writes what was learnt, by the model's name."""

    database: Database

    def learn(self, model: str, tokens: int, now: float) -> None:
        """A request showed that the window is at most `tokens`: of several such figures the smallest counts."""
        name = _name(model)
        with self.database.write() as connection:
            learnt = {"model": name, "tokens": tokens, "learned_at": now}
            connection.execute(insert_if_absent(connection, windows).values(learnt))
            smaller = update(windows).where(windows.c.model == name, windows.c.tokens > tokens)
            connection.execute(smaller.values(tokens=tokens, learned_at=now))

    def confirm(self, model: str, tokens: int) -> None:
        """A request of `tokens` was answered: a window that was learnt to be smaller is at least that large."""
        name = _name(model)
        if (known := self.read(model)) is None or known >= tokens:
            return  # nearly always: no write transaction for it
        with self.database.write() as connection:
            larger = update(windows).where(windows.c.model == name, windows.c.tokens < tokens)
            connection.execute(larger.values(tokens=tokens))

    def read(self, model: str) -> int | None:
        """The window in tokens; `None` where nothing was learnt."""
        with self.database.read() as connection:
            query = select(windows).where(windows.c.model == _name(model))
            found = readable(connection, connection.execute(query).mappings(), _tokens)
        return found[0] if found else None


def _tokens(row: RowMapping) -> int:
    check(windows, row)
    return int(row["tokens"])


def _name(model: str) -> str:
    return packed(model)[:_MAX_NAME_CHARS]
