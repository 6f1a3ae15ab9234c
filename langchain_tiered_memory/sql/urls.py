"""What a user names as the database, as an SQLAlchemy URL."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from langchain_tiered_memory.errors import SettingsError

_PASSWORD = re.compile(r"(?<=://)[^/@]*@")


def url_of(where: str | Path | None) -> URL:
    """The URL of a path, a URL, or (with `None`) a database in memory."""
    if where is None or where == ":memory:":
        return URL.create("sqlite")
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().resolve()))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError) as error:
        msg = f"{_PASSWORD.sub('***@', where)!r} is not a database URL: give a path, or a sqlite or postgresql URL"
        raise SettingsError(msg) from error
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if not url.query:
            return URL.create("sqlite", database=url.database)
        msg = (
            f"an sqlite URL takes no options here ({', '.join(sorted(url.query))}): open() has read_only=True, and "
            "settings.busy_seconds is how long to wait for a lock"
        )
        raise SettingsError(msg)
    msg = f"{url.drivername!r} is not supported: give a path, or a sqlite or postgresql URL"
    raise SettingsError(msg)
