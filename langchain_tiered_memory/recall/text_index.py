"""Text search inside SQL: SQLite's FTS5 and PostgreSQL's tsvector, fed with the terms of our own analysis.

The database only finds passages that share a term with the question; how well they match is judged in
`ranking`, from the same figures on every database. Counting stops at a ceiling, so that a common word costs no more
in a long history than in a short one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Float, Row, Select, Text, TextClause, and_, bindparam, func, select, text

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import beside_index, packed, passages, scope_of, sessions
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.derived_rows import TERM_COUNT
from langchain_tiered_memory.types.records import Passage, SessionRef, TextStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.types.drafts import SearchFilters


_SAMPLE = 200
"""Passages of summaries that tell their usual length."""
_MOST_TERMS = 100
"""Terms of a question that are looked up; SQLite joins at most 500 queries."""
_MOST_PER_TERM = 10_000
"""Passages that one term names: what a common word costs stays within bounds."""

_WEIGHT_UNITS = 1 << 30
"""In one nat: a hundred weights of some ten nats stay far below the largest whole number of a database."""
_INDEXES = {
    "sqlite": ("ltm_passages_fts", "ltm_passages_fts.rowid", "ltm_passages_fts MATCH :term{number}"),
    # No index is to be walked in the order of the ids: what a rare term names stands far behind the newest.
    "postgresql": ("ltm_passages", "ltm_passages.id + 0", "ltm_passages.tsv @@ CAST(:term{number} AS tsquery)"),
}
"""By dialect: where terms are looked up, the id of a passage there, and what names those of a term."""
_FIGURES = select(sessions.c.passages, sessions.c.terms).where(sessions.c.key.in_(bindparam("keys", expanding=True)))
_OF_LEVEL = and_(passages.c.session_key == bindparam("session"), passages.c.level == bindparam("level"))
_NEWEST = select(TERM_COUNT.label("terms")).where(_OF_LEVEL).order_by(passages.c.seq.desc()).limit(_SAMPLE).subquery()
_SUMMARY_FIGURES = select(select(func.count()).where(_OF_LEVEL).scalar_subquery(), func.avg(_NEWEST.c.terms))
_OF_ENTRIES = select(*derived_rows.PASSAGE_COLUMNS).where(
    passages.c.session_key == bindparam("session"),
    passages.c.level == 0,
    passages.c.seq.in_(bindparam("seqs", expanding=True)),
)
_LIMITS = {
    "tracks": "ltm_passages.track IN :tracks",
    "kinds": "ltm_passages.kind IN :kinds",
    "since": "ltm_passages.at >= :since",
    "until": "ltm_passages.at <= :until",
}
"""What filters ask of a passage."""
_SEVERAL = frozenset({"tracks", "kinds"})
_COUNTED_AT_ONCE = 100
"""Terms that one statement counts: SQLite joins no more than 500 selects."""


class TextIndex(Room):
    """Finds passages by their terms."""

    def statistics(
        self, refs: Sequence[SessionRef], terms: Sequence[str], *, level: int = 0, ceiling: int = 2000
    ) -> TextStatistics:
        """How often each term occurs in the passages of one level of some sessions, counted up to `ceiling`."""
        count, total = 0, 0.0
        with self.database.read() as connection:
            if level:
                for ref in refs:
                    found, mean = connection.execute(_SUMMARY_FIGURES, {"session": ref.key, "level": level}).one()
                    count, total = count + int(found or 0), total + int(found or 0) * float(mean or 0)
            for part in [] if level else chunks([ref.key for ref in refs]):
                for row in connection.execute(_FIGURES, {"keys": part}).mappings():
                    figures = rows.figures_of(connection, row)
                    count, total = count + figures["passages"], total + figures["terms"]
            scopes = [scope_of(ref.key, level) for ref in refs]
            frequency = self._frequencies(connection, scopes, list(dict.fromkeys(terms)), ceiling=ceiling)
        mean_terms = total / count if count else 0.0
        return TextStatistics(passages=count, average_terms=mean_terms, document_frequency=frequency, ceiling=ceiling)

    def _frequencies(
        self, connection: Connection, scopes: Sequence[str], terms: Sequence[str], *, ceiling: int
    ) -> dict[str, int]:
        """In how many passages each term occurs: one statement for many terms."""
        table, _, names = _INDEXES[self.database.dialect]
        counted = f"(SELECT 1 FROM {table} WHERE {names} LIMIT :most) AS anon_{{number}}"
        found = dict[str, int]()
        for start in range(0, len(terms), _COUNTED_AT_ONCE):
            part = terms[start : start + _COUNTED_AT_ONCE]
            every = " UNION ALL ".join(
                f"SELECT {number}, count(*) FROM {counted.format(number=number)}" for number in range(len(part))
            )
            counts = connection.execute(text(every), self._named(scopes, part) | {"most": ceiling}).all()
            found |= {part[number]: int(count) for number, count in counts}
        return found

    def _named(self, scopes: Sequence[str], terms: Sequence[str]) -> dict[str, Any]:
        """Each term as its database is asked for it, within these scopes."""
        asked = _fts_query if self.database.dialect == "sqlite" else _ts_query
        return {f"term{number}": asked(scopes, term) for number, term in enumerate(terms)}

    def find(
        self,
        refs: Sequence[SessionRef],
        weights: Mapping[str, float],
        *,
        level: int = 0,
        limit: int,
        filters: SearchFilters | None = None,
    ) -> list[Row[Any]]:
        """`id`, `session_key` and `seq` of the passages that share a term with the question, the best `limit` of them.

        Those come first whose terms weigh most together; of equals, the newest. Of more than 100 terms the heaviest
        count. A term names at most its newest 10,000 passages. `weights` says of each term of the question
        how much it tells (such as its idf); `level` is 0 for messages.
        """
        keys = {ref.key for ref in refs}
        heaviest = sorted(weights.items(), key=lambda item: -item[1])[:_MOST_TERMS]
        if not heaviest or not keys:
            return []
        scopes = [scope_of(key, level) for key in sorted(keys)]
        named = self._named(scopes, [term for term, _ in heaviest]) | _limits(filters)
        # Whole numbers add up to the same in any order: passages that share the same terms are equals everywhere.
        named |= {f"weight{number}": round(weight * _WEIGHT_UNITS) for number, (_, weight) in enumerate(heaviest)}
        limits = tuple(name for name in _LIMITS if name in named)
        query = _candidates(self.database.dialect, len(heaviest), limits)
        with self.database.read() as connection:
            found = connection.execute(query, named | {"limit": limit, "most": _MOST_PER_TERM}).all()
        # What an index names is compared with the row: a damaged one may name another session's.
        return [row for row in found if row.session_key in keys and isinstance(row.seq, int)]

    def by_id(
        self, ref: SessionRef | None, ids: Sequence[int], *, filters: SearchFilters | None = None
    ) -> list[Passage]:
        """These passages, where they belong to the session and pass the filters; in no order."""
        found: list[Passage] = []
        for part in chunks(list(ids)):
            query: Select[Any] = select(*derived_rows.PASSAGE_COLUMNS).where(passages.c.id.in_(part))
            if ref is not None:
                query = query.where(beside_index(passages.c.session_key) == ref.key)
            for condition in _conditions(filters):
                query = query.where(condition)
            with self.database.read() as connection:
                found += readable(connection, connection.execute(query).all(), derived_rows.passage_of)
        return found

    def of_entries(self, ref: SessionRef, seqs: Sequence[int]) -> list[Passage]:
        """Every passage of these entries, in order."""
        found: list[Passage] = []
        for part in chunks(sorted(set(seqs))):
            named = {"session": ref.key, "seqs": part}
            with self.database.read() as connection:
                found += readable(connection, connection.execute(_OF_ENTRIES, named).all(), derived_rows.passage_of)
        return sorted(found, key=lambda one: (one.seq, one.part))


def _limits(filters: SearchFilters | None) -> dict[str, Any]:
    """What filters ask for, by the names of `_LIMITS`."""
    if filters is None:
        return {}
    asked = {
        "tracks": None if filters.tracks is None else [packed(track) for track in filters.tracks],
        "kinds": None if filters.kinds is None else [packed(kind) for kind in filters.kinds],
        "since": filters.since,
        "until": filters.until,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _conditions(filters: SearchFilters | None) -> list[TextClause]:
    return [
        text(_LIMITS[name]).bindparams(
            bindparam(name, value, type_=Text() if name in _SEVERAL else Float(), expanding=name in _SEVERAL)
        )
        for name, value in _limits(filters).items()
    ]


@lru_cache(maxsize=256)
def _candidates(dialect: str, terms: int, limits: tuple[str, ...]) -> TextClause:
    """Passages by the summed weights of their terms: what an index says itself weighs by figures of every session.

    As text: to build, and to read, a select of each term takes SQLAlchemy longer than SQLite takes to answer.
    """
    table, place, names = _INDEXES[dialect]
    beside = f" JOIN ltm_passages ON ltm_passages.id = {place}" if limits and table != "ltm_passages" else ""
    where = "".join(f" AND {_LIMITS[name]}" for name in limits)
    each = " UNION ALL ".join(
        f"SELECT * FROM (SELECT {place} AS id, CAST(:weight{number} AS BIGINT) AS weight "
        f"FROM {table}{beside} WHERE {names.format(number=number)}{where} "
        f"ORDER BY {place} DESC LIMIT :most) AS anon_{number}"
        for number in range(terms)
    )
    query = text(
        "SELECT ltm_passages.id, session_key, seq FROM ltm_passages JOIN "
        f"(SELECT id, sum(weight) AS score FROM ({each}) AS anon_each GROUP BY id "
        "ORDER BY score DESC, id DESC LIMIT :limit) AS anon_ranked ON anon_ranked.id = ltm_passages.id "
        "ORDER BY anon_ranked.score DESC, ltm_passages.id DESC"
    )
    return query.bindparams(*(bindparam(name, type_=Text(), expanding=True) for name in limits if name in _SEVERAL))


def _fts_query(scopes: Sequence[str], term: str) -> str:
    within = " OR ".join(f'"{scope}"' for scope in scopes)
    return f'scope:({within}) AND terms:("{term.replace(chr(34), chr(34) * 2)}")'


def _ts_query(scopes: Sequence[str], term: str) -> str:
    within = " | ".join(f"'{scope}'" for scope in scopes)
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"({within}) & ('{escaped}')"
