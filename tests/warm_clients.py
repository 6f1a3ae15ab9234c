"""Clients of providers that are made as fast as can be: the certificates of the world are read once a process.

Reading them takes longer than most tests, and the servers that tests talk to have none.
"""

from __future__ import annotations

from functools import cache

from httpx._transports import default as transports


def share_certificates() -> None:
    """From now on every client of this process has the TLS context of the first one that asks for the same."""
    transports.create_ssl_context = cache(transports.create_ssl_context)
