"""Text search inside SQL: SQLite's FTS5 and PostgreSQL's tsvector, fed with the terms of our own analysis.

The database only finds passages that share a term with the question; how well they match is judged in
`ranking`, from the same figures on every database. Counting stops at a ceiling, so that a common word costs no more
in a long history than in a short one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
    union_all,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import beside_index, packed, passages, scope_of, sessions
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.derived_rows import TERM_COUNT
from langchain_tiered_memory.types.records import Passage, SessionRef, TextStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.sql.database import Database
    from langchain_tiered_memory.types.drafts import SearchFilters


_SAMPLE = 200
"""Passages of summaries that tell their usual length."""
_MOST_TERMS = 100
"""Terms of a question that are looked up; SQLite joins at most 500 queries."""
_MOST_PER_TERM = 10_000
"""Passages that one term names: what a common word costs stays within bounds."""

_fts = table("ltm_passages_fts", column("rowid"))
_tsv: ColumnElement[str] = literal_column("ltm_passages.tsv")


_COUNT_ON_SQLITE = (
    "SELECT {number}, count(*) FROM "
    "(SELECT 1 FROM ltm_passages_fts WHERE ltm_passages_fts MATCH :query{number} LIMIT :most)"
)
_COUNT_ON_POSTGRESQL = (
    "SELECT {number}, count(*) FROM "
    "(SELECT 1 FROM ltm_passages WHERE tsv @@ CAST(:query{number} AS tsquery) LIMIT :most) x{number}"
)
_COUNTED_AT_ONCE = 100
"""Terms that one statement counts: SQLite joins no more than 500 selects."""


@retried
@dataclass(frozen=True, slots=True)
class TextIndex:
    """Finds passages by their terms."""

    database: Database

    def statistics(
        self, ref: SessionRef, terms: Sequence[str], *, level: int = 0, ceiling: int = 2000
    ) -> TextStatistics:
        """How often each term occurs in a session's passages of one level, counted up to `ceiling`."""
        with self.database.read() as connection:
            if level == 0:
                query = select(sessions.c.passages, sessions.c.terms).where(sessions.c.key == ref.key)
                row = connection.execute(query).mappings().one_or_none()
                figures = rows.figures_of(connection, row) if row is not None else {}
                count, total = figures.get("passages", 0), figures.get("terms", 0)
            else:
                count, total = _summary_figures(connection, ref, level)
            scopes = [scope_of(ref.key, level)]
            frequency = self._frequencies(connection, scopes, list(dict.fromkeys(terms)), ceiling=ceiling)
        return _statistics(count, total, frequency, ceiling)

    def statistics_across(
        self, refs: Sequence[SessionRef], terms: Sequence[str], *, ceiling: int = 2000
    ) -> TextStatistics:
        """As `statistics`, of the messages of several sessions together."""
        keys, figures = [ref.key for ref in refs], (sessions.c.passages, sessions.c.terms)
        count, total = 0, 0
        with self.database.read() as connection:
            for part in chunks(keys):
                query = select(*(func.coalesce(func.sum(one), 0) for one in figures)).where(sessions.c.key.in_(part))
                passage_count, term_count = connection.execute(query).one()
                count, total = count + int(passage_count), total + int(term_count)
            scopes = [scope_of(key, 0) for key in keys]
            frequency = self._frequencies(connection, scopes, list(dict.fromkeys(terms)), ceiling=ceiling)
        return _statistics(count, total, frequency, ceiling)

    def _frequencies(
        self, connection: Connection, scopes: Sequence[str], terms: Sequence[str], *, ceiling: int
    ) -> dict[str, int]:
        """In how many passages each term occurs: one statement for many terms."""
        is_sqlite = self.database.dialect == "sqlite"
        look_up = _COUNT_ON_SQLITE if is_sqlite else _COUNT_ON_POSTGRESQL
        query_of = _fts_query if is_sqlite else _ts_query
        found = dict[str, int]()
        for start in range(0, len(terms), _COUNTED_AT_ONCE):
            part = terms[start : start + _COUNTED_AT_ONCE]
            every = " UNION ALL ".join(look_up.format(number=number) for number in range(len(part)))
            named = {f"query{number}": query_of(scopes, [term]) for number, term in enumerate(part)}
            counts = connection.execute(text(every), named | {"most": ceiling}).all()
            found |= {part[number]: int(count) for number, count in counts}
        return found

    def find(
        self,
        ref: SessionRef,
        weights: Mapping[str, float],
        *,
        level: int = 0,
        limit: int,
        filters: SearchFilters | None = None,
    ) -> list[Passage]:
        """Passages that share a term with the question, the most promising `limit` of them.

        Those come first whose terms weigh most together; of equals, the newest. Of more than 100 terms the heaviest
        count. On SQLite a term names at most its newest 10,000 passages.

        Args:
            ref: The session to search.
            weights: The question's terms and how much each tells (such as its idf).
            level: 0 for messages, else the level of summaries.
            limit: How many at most.
            filters: Further conditions.
        """
        query = self._candidates(ref, weights, level=level, limit=limit, filters=filters)
        if query is None:
            return []
        with self.database.read() as connection:
            return readable(connection, connection.execute(query).all(), derived_rows.passage_of)

    def seqs(
        self, ref: SessionRef, weights: Mapping[str, float], *, limit: int, filters: SearchFilters | None = None
    ) -> set[int]:
        """The messages of the passages that `find` gives, for who reads all passages of these anyway."""
        query = self._candidates(ref, weights, level=0, limit=limit, filters=filters)
        if query is None:
            return set()
        with self.database.read() as connection:
            found = connection.scalars(query.with_only_columns(passages.c.seq, maintain_column_froms=True))
            return {seq for seq in found if isinstance(seq, int)}

    def places(
        self,
        refs: Sequence[SessionRef],
        weights: Mapping[str, float],
        *,
        limit: int,
        filters: SearchFilters | None = None,
    ) -> set[tuple[int, int]]:
        """As `seqs`, of several sessions: the keys of their sessions, and their numbers there."""
        heaviest, keys = _heaviest(weights), {ref.key for ref in refs}
        if not heaviest or not keys:
            return set()
        made = _sqlite_candidates if self.database.dialect == "sqlite" else _postgresql_candidates
        query = made([scope_of(key, 0) for key in sorted(keys)], heaviest, _conditions(filters), limit)
        with self.database.read() as connection:
            rows_found = connection.execute(
                query.with_only_columns(passages.c.session_key, passages.c.seq, maintain_column_froms=True)
            )
            return {(key, seq) for key, seq in rows_found if key in keys and isinstance(seq, int)}

    def _candidates(
        self,
        ref: SessionRef,
        weights: Mapping[str, float],
        *,
        level: int,
        limit: int,
        filters: SearchFilters | None,
    ) -> Select[Any] | None:
        heaviest = _heaviest(weights)
        if not heaviest:
            return None
        made = _sqlite_candidates if self.database.dialect == "sqlite" else _postgresql_candidates
        query = made([scope_of(ref.key, level)], heaviest, _conditions(filters), limit)
        return query.where(passages.c.session_key == ref.key)

    def by_id(
        self, ref: SessionRef | None, ids: Sequence[int], *, filters: SearchFilters | None = None
    ) -> list[Passage]:
        """These passages, where they belong to the session and pass the filters; in no order."""
        found: list[Passage] = []
        for start in range(0, len(ids), 500):
            query: Select[Any] = select(*derived_rows.PASSAGE_COLUMNS).where(
                passages.c.id.in_(list(ids[start : start + 500]))
            )
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
        wanted = sorted(set(seqs))
        for start in range(0, len(wanted), 500):
            query = select(*derived_rows.PASSAGE_COLUMNS).where(
                passages.c.session_key == ref.key,
                passages.c.level == 0,
                passages.c.seq.in_(wanted[start : start + 500]),
            )
            with self.database.read() as connection:
                found += readable(connection, connection.execute(query).all(), derived_rows.passage_of)
        return sorted(found, key=lambda one: (one.seq, one.part))


def _statistics(count: int, total: float, frequency: dict[str, int], ceiling: int) -> TextStatistics:
    mean = total / count if count else 0.0
    return TextStatistics(passages=count, average_terms=mean, document_frequency=frequency, ceiling=ceiling)


def _heaviest(weights: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(weights.items(), key=lambda item: -item[1])[:_MOST_TERMS]


def _summary_figures(connection: Connection, ref: SessionRef, level: int) -> tuple[int, float]:
    """Passages of the summaries of a level, and their terms: the mean is taken of the newest ones."""
    mine = and_(passages.c.session_key == ref.key, passages.c.level == level)
    newest = select(TERM_COUNT.label("terms")).where(mine).order_by(passages.c.seq.desc()).limit(_SAMPLE).subquery()
    counted = select(func.count()).where(mine).scalar_subquery()
    count, mean = connection.execute(select(counted, func.avg(newest.c.terms))).one()
    return int(count or 0), int(count or 0) * float(mean or 0)


def _conditions(filters: SearchFilters | None) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if filters is None:
        return found
    if filters.tracks is not None:
        found.append(passages.c.track.in_([packed(track) for track in filters.tracks]))
    if filters.kinds is not None:
        found.append(passages.c.kind.in_([packed(kind) for kind in filters.kinds]))
    if filters.since is not None:
        found.append(passages.c.at >= filters.since)
    if filters.until is not None:
        found.append(passages.c.at <= filters.until)
    return found


def _sqlite_candidates(
    scopes: Sequence[str], weights: Sequence[tuple[str, float]], conditions: Sequence[ColumnElement[bool]], limit: int
) -> Select[Any]:
    """Passages by the summed weights of their terms. FTS5's own `bm25` would weigh by figures of every session."""
    named = []
    for number, (term, weight) in enumerate(weights):
        match = text(f"ltm_passages_fts MATCH :term{number}").bindparams(
            bindparam(f"term{number}", _fts_query(scopes, [term]))
        )
        one = select(_fts.c.rowid.label("id"), literal(weight).label("weight")).where(match)
        if conditions:
            one = one.join(passages, passages.c.id == _fts.c.rowid).where(*conditions)
        named.append(select(one.order_by(_fts.c.rowid.desc()).limit(_MOST_PER_TERM).subquery()))
    every = union_all(*named).subquery()
    score = func.sum(every.c.weight).label("score")
    best = select(every.c.id, score).group_by(every.c.id).order_by(score.desc(), every.c.id.desc()).limit(limit)
    ranked = best.subquery()
    return (
        select(*derived_rows.PASSAGE_COLUMNS)
        .join(ranked, ranked.c.id == passages.c.id)
        .order_by(ranked.c.score.desc(), passages.c.id.desc())
    )


def _postgresql_candidates(
    scopes: Sequence[str], weights: Sequence[tuple[str, float]], conditions: Sequence[ColumnElement[bool]], limit: int
) -> Select[Any]:
    """As `_sqlite_candidates`; the index of a `tsvector` answers for all terms at once."""
    any_term = cast(_ts_query(scopes, [term for term, _ in weights]), TSQUERY)
    score = sum(
        (case((_tsv.op("@@")(cast(_quoted(term), TSQUERY)), weight), else_=0.0) for term, weight in weights),
        literal(0.0),
    )
    return (
        select(*derived_rows.PASSAGE_COLUMNS)
        .where(_tsv.op("@@")(any_term), *conditions)
        .order_by(score.desc(), passages.c.id.desc())
        .limit(limit)
    )


def _fts_query(scopes: Sequence[str], terms: Sequence[str]) -> str:
    wanted = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    within = " OR ".join(f'"{scope}"' for scope in scopes)
    return f"scope:({within}) AND terms:({wanted})"


def _quoted(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _ts_query(scopes: Sequence[str], terms: Sequence[str]) -> str:
    wanted = " | ".join(_quoted(term) for term in terms)
    within = " | ".join(f"'{scope}'" for scope in scopes)
    return f"({within}) & ({wanted})"
