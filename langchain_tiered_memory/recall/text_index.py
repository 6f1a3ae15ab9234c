"""Text search inside SQL: SQLite's FTS5 and PostgreSQL's tsvector, fed with the terms of our own analysis.

The database only finds passages that share a term with the question; how well they match is judged in
`ranking`, from the same figures on every database. Counting stops at a ceiling, so that a common word costs no more
in a long history than in a short one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Row,
    Select,
    Text,
    TextClause,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import beside_index, entries, packed, passages, scope_of, sessions, unpacked
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.derived_rows import TERM_COUNT
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import EARLIEST, LATEST, Passage, SessionRef, TextStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_SAMPLE = 200
"""Passages of summaries that tell their usual length."""
_MOST_TERMS = 100
"""Terms of a question that are looked up; SQLite joins at most 500 queries."""
_MOST_PER_TERM = 10_000
"""Passages that one term names: what a common word costs stays within bounds."""

_tsv: ColumnElement[str] = literal_column("ltm_passages.tsv")


_COUNT_ON_SQLITE = (
    "SELECT {number}, count(*) FROM "
    "(SELECT 1 FROM ltm_passages_fts WHERE ltm_passages_fts MATCH :query{number} LIMIT :most)"
)
_COUNT_ON_POSTGRESQL = (
    "SELECT {number}, count(*) FROM "
    "(SELECT 1 FROM ltm_passages WHERE tsv @@ CAST(:query{number} AS tsquery) LIMIT :most) x{number}"
)
_FIGURES = select(sessions.c.passages, sessions.c.terms).where(sessions.c.key.in_(bindparam("keys", expanding=True)))
_OF_LEVEL = and_(passages.c.session_key == bindparam("session"), passages.c.level == bindparam("level"))
_NEWEST = select(TERM_COUNT.label("terms")).where(_OF_LEVEL).order_by(passages.c.seq.desc()).limit(_SAMPLE).subquery()
_SUMMARY_FIGURES = select(select(func.count()).where(_OF_LEVEL).scalar_subquery(), func.avg(_NEWEST.c.terms))
_BY_SEQ = and_(
    passages.c.session_key == bindparam("session"),
    passages.c.level == 0,
    passages.c.seq.in_(bindparam("seqs", expanding=True)),
)
_SAID = (
    select(*derived_rows.PASSAGE_COLUMNS, passages.c.at, entries.c.role, entries.c.name)
    .join(entries, and_(entries.c.session_key == passages.c.session_key, entries.c.seq == passages.c.seq))
    .where(_BY_SEQ)
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


class Said(NamedTuple):
    """A passage of a message, with when it was said and by whom."""

    passage: Passage
    at: float
    role: str
    name: str | None


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
        refs: Sequence[SessionRef],
        weights: Mapping[str, float],
        *,
        level: int = 0,
        limit: int,
        filters: SearchFilters | None = None,
    ) -> list[Row[Any]]:
        """`id`, `session_key` and `seq` of the passages that share a term with the question, the best `limit` of them.

        Those come first whose terms weigh most together; of equals, the newest. Of more than 100 terms the heaviest
        count. On SQLite a term names at most its newest 10,000 passages. `weights` says of each term of the question
        how much it tells (such as its idf); `level` is 0 for messages.
        """
        keys = {ref.key for ref in refs}
        heaviest = sorted(weights.items(), key=lambda item: -item[1])[:_MOST_TERMS]
        if not heaviest or not keys:
            return []
        scopes = [scope_of(key, level) for key in sorted(keys)]
        candidates = _sqlite_candidates if self.database.dialect == "sqlite" else _postgresql_candidates
        with self.database.read() as connection:
            found = candidates(connection, scopes, heaviest, filters=filters, limit=limit)
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

    def said(self, ref: SessionRef, seqs: Sequence[int], *, filters: SearchFilters | None = None) -> list[Said]:
        """Every passage of these entries, in order: of the tracks that the filters let pass."""
        found: list[Said] = []
        tracks = filters.tracks if filters is not None else None
        query = _SAID if tracks is None else _SAID.where(*_conditions(SearchFilters(tracks=tracks)))
        for part in chunks(sorted(set(seqs))):
            named = {"session": ref.key, "seqs": part}
            with self.database.read() as connection:
                found += readable(connection, connection.execute(query, named).all(), _said_of)
        return sorted(found, key=lambda one: (one.passage.seq, one.passage.part))


def _said_of(row: Sequence[Any]) -> Said:
    *columns, at, role, name = row
    if not (isinstance(at, float | int) and EARLIEST <= at <= LATEST):
        check(passages, {"id": columns[0], "at": at})
    return Said(derived_rows.passage_of(columns), at, role, unpacked(name) if isinstance(name, str) else None)


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


def _sqlite_candidates(
    connection: Connection,
    scopes: Sequence[str],
    weights: Sequence[tuple[str, float]],
    *,
    filters: SearchFilters | None,
    limit: int,
) -> Sequence[Row[Any]]:
    """Passages by the summed weights of their terms. FTS5's own `bm25` would weigh by figures of every session."""
    named: dict[str, Any] = {"limit": limit, "most": _MOST_PER_TERM, **_limits(filters)}
    for number, (term, weight) in enumerate(weights):
        named |= {f"term{number}": _fts_query(scopes, [term]), f"weight{number}": weight}
    names = tuple(name for name in _LIMITS if name in named)
    return connection.execute(_sqlite_query(len(weights), names), named).all()


@lru_cache(maxsize=256)
def _sqlite_query(terms: int, limits: tuple[str, ...]) -> TextClause:
    """As text: to build, and to read, a select of each term takes SQLAlchemy longer than SQLite takes to answer."""
    where = "".join(f" AND {_LIMITS[name]}" for name in limits)
    beside = " JOIN ltm_passages ON ltm_passages.id = ltm_passages_fts.rowid" if limits else ""
    each = " UNION ALL ".join(
        f"SELECT * FROM (SELECT ltm_passages_fts.rowid AS id, :weight{number} AS weight FROM ltm_passages_fts{beside} "
        f"WHERE ltm_passages_fts MATCH :term{number}{where} ORDER BY ltm_passages_fts.rowid DESC LIMIT :most)"
        for number in range(terms)
    )
    query = text(
        "SELECT ltm_passages.id, session_key, seq FROM ltm_passages JOIN "
        f"(SELECT id, sum(weight) AS score FROM ({each}) GROUP BY id "
        "ORDER BY score DESC, id DESC LIMIT :limit) AS anon_ranked ON anon_ranked.id = ltm_passages.id "
        "ORDER BY anon_ranked.score DESC, ltm_passages.id DESC"
    )
    return query.bindparams(*(bindparam(name, expanding=True) for name in limits if name in _SEVERAL))


def _postgresql_candidates(
    connection: Connection,
    scopes: Sequence[str],
    weights: Sequence[tuple[str, float]],
    *,
    filters: SearchFilters | None,
    limit: int,
) -> Sequence[Row[Any]]:
    """As `_sqlite_candidates`; the index of a `tsvector` answers for all terms at once."""
    any_term = cast(_ts_query(scopes, [term for term, _ in weights]), TSQUERY)
    score = sum(
        (case((_tsv.op("@@")(cast(_quoted(term), TSQUERY)), weight), else_=0.0) for term, weight in weights),
        literal(0.0),
    )
    query: Select[Any] = (
        select(passages.c.id, passages.c.session_key, passages.c.seq)
        .where(_tsv.op("@@")(any_term), *_conditions(filters))
        .order_by(score.desc(), passages.c.id.desc())
        .limit(limit)
    )
    return connection.execute(query).all()


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
