"""Serves the sessions of a database live, to everybody on this machine who has the address with its token.

A request is refused if it names another host (a name that was bound to this machine from outside), comes from another
site's page, or lacks the token. No answer has a header that would let another site read it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from langchain_tiered_memory.display.sheet import harmless, plural
from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, TieredMemoryError
from langchain_tiered_memory.pages.page import content_of, document, embedded, listing, policy
from langchain_tiered_memory.summaries.marks import RULES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractContextManager

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.session import Session

OpenToWrite: TypeAlias = "Callable[[], AbstractContextManager[TieredMemory]]"

_LOOK_SECONDS = 1.0
"""Seconds between two checks for news."""
_MOST_LISTED = 200
"""Sessions on the first page, the newest first."""
_MOST_ASKED = 65_536
"""The most bytes of a request to change something."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_OWN_SITE = (None, "none", "same-origin")
"""Allowed values of `Sec-Fetch-Site`. A client that is not a browser sends none."""


def application(
    reading: TieredMemory,
    writing: OpenToWrite | None,
    *,
    token: str,
    port: int,
    stopping: Callable[[], bool] = lambda: False,
) -> ASGIApp:
    """The pages of a memory.

    Args:
        reading: The memory, opened read-only.
        writing: Opens it for one change. `None` if nobody may change anything.
        token: Part of every address: `http://127.0.0.1:<port>/<token>/`.
        port: The port on this machine.
        stopping: Whether the server is about to end. Clients that wait for news are then released.
    """
    pages = _Pages(reading=reading, writing=writing, stopping=stopping)
    routes = [
        Route("/", pages.sessions),
        Route("/page", pages.page),
        Route("/data", pages.data),
        Route("/events", pages.events),
        Route("/act", pages.act, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {TieredMemoryError: _cannot_be_done}
    return _OnlyFromHere(Starlette(routes=routes, exception_handlers=handlers), token=token, port=port)


def _cannot_be_done(request: Request, error: Exception) -> Response:
    """An error text for a person instead of a page, or for a page's script instead of its data."""
    if request.url.path in ("/data", "/act"):
        return JSONResponse({"error": str(error)}, 400 if request.method == "POST" else 404)
    return PlainTextResponse(str(error), 404)


class _OnlyFromHere:
    """Passes only requests from this server's own pages with the token, and sets headers that keep answers here."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def kept_here(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if scope["type"] != "http":
            return
        _, _, rest = scope["path"].partition("/")
        token, slash, place = rest.partition("/")
        refused = self._refusal(Headers(scope=scope), scope["method"])
        if refused is None and not secrets.compare_digest(token.encode(), self._token):
            refused = PlainTextResponse("There is nothing here: use the whole address that `serve` printed.", 404)
        if refused is None and not slash:
            refused = RedirectResponse(f"/{token}/")
        await (refused or self._app)({**scope, "path": f"/{place}"}, receive, kept_here)

    def _refusal(self, headers: Headers, method: str) -> Response | None:
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("This address is only served on this machine.", 421)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        is_own = site in _OWN_SITE and (origin in self._origins if origin is not None else method in ("GET", "HEAD"))
        return None if is_own else PlainTextResponse("The request comes from another site's page: it is refused.", 403)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pages:
    """The handlers of the addresses."""

    reading: TieredMemory
    writing: OpenToWrite | None
    stopping: Callable[[], bool]

    async def sessions(self, request: Request) -> Response:
        """The sessions, each with a link to its page."""
        del request

        def told() -> str:
            names = self.reading.sessions()[::-1]
            found = [self.reading.session(name).metrics() for name in names[:_MOST_LISTED]]
            listed = [
                {
                    "name": harmless(one.session_id),
                    "address": f"page?id={quote(one.session_id.encode('utf-8', 'replace'), safe='')}",
                    "size": f"{plural(one.messages, 'message')}, {plural(one.tokens, 'token')}",
                }
                for one in found
                if one.messages
            ]
            more = len(names) - len(found)
            return listing(listed, more=plural(more, "older session") if more else "")

        return _html(await off_loop(told))

    async def page(self, request: Request) -> Response:
        def told() -> str:
            session = self._session(request)
            stamp = _stamp(session)
            content = content_of(session) | {"stamp": stamp, "may_change": self.writing is not None}
            return document(content, live=True)

        return _html(await off_loop(told))

    async def data(self, request: Request) -> Response:
        """The content of a page, with the messages after `after`."""
        after = request.query_params.get("after", "0")
        if not after.isdecimal():
            msg = f"`after` must be a message's number, not {after!r}"
            raise InvalidInputError(msg)
        found = await off_loop(lambda: embedded(content_of(self._session(request), after=int(after))))
        return Response(found, media_type="application/json")

    async def events(self, request: Request) -> Response:
        """Reports that there is something new, as long as somebody listens."""
        session = self._session(request)
        known = request.headers.get("last-event-id") or request.query_params.get("stamp", "")

        async def told() -> AsyncIterator[str]:
            last = known
            yield ": following\n\n"
            while not self.stopping():
                try:
                    stamp = await off_loop(_stamp, session)
                except TieredMemoryError:
                    stamp = last  # out of reach just now: it is asked again
                if stamp != last:
                    yield f"id: {stamp}\nevent: changed\ndata:\n\n"
                last = stamp
                await asyncio.sleep(_LOOK_SECONDS)

        return StreamingResponse(told(), media_type="text/event-stream")

    async def act(self, request: Request) -> Response:
        """Pin, unpin, forget, undo or rate, as a person asks."""
        if self.writing is None:
            return JSONResponse({"error": "these pages are read-only: start `serve` without --read-only"}, 403)
        if request.headers.get("content-type") != "application/json":
            return JSONResponse({"error": "it must be JSON"}, 415)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_ASKED:
                return JSONResponse({"error": "the request is too large for a change"}, 413)
        return JSONResponse(await off_loop(_done, self.writing, _wanted(body)))

    def _session(self, request: Request) -> Session:
        return _existing(self.reading, request.query_params.get("id", ""))


def _existing(memory: TieredMemory, name: str, **chosen: Any) -> Session:  # noqa: ANN401 - as `session` takes them
    if name not in memory.sessions():
        msg = f"there is no session {name!r} in this database"
        raise NotFoundError(msg)
    return memory.session(name, **chosen)


def _wanted(body: bytes) -> dict[str, str]:
    """The fields of a request: texts by name."""
    try:
        found = json.loads(body)
    except ValueError as error:
        msg = "it must be JSON"
        raise InvalidInputError(msg) from error
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        msg = "it must be an object whose values are texts"
        raise InvalidInputError(msg)
    return found


def _done(writing: OpenToWrite, wanted: Mapping[str, str]) -> dict[str, Any]:
    """Carry out a request in a memory that is opened for it. Returns what to show of it."""
    message, verb = wanted.get("message", ""), wanted.get("verb")
    with writing() as memory:
        session = _existing(memory, wanted.get("session", ""), track=wanted.get("track", "main"))
        if verb == "pin":
            session.pin(message)
        elif verb == "unpin":
            session.unpin(message)
        elif verb == "forget":
            return {"receipt": asdict(session.forget(message_ids=[message]))}
        elif verb == "undo":
            session.undo(wanted.get("outcome", ""))
        elif verb == "rate":
            verdict: Any = wanted.get("verdict")  # the session's border refuses what is none
            rated = session.rate(wanted.get("summary", ""), verdict, note=wanted.get("note") or None)
            if rated.stale and rated.model == RULES and not rated.by_rules:
                session.flush()  # what a model wrote waits for the program that has the model
        else:
            msg = f"a page cannot do {verb!r}: use pin, unpin, forget, undo or rate"
            raise InvalidInputError(msg)
    return {}


def _stamp(session: Session) -> str:
    """A cheap value that changes when a page has new messages, summaries or decisions to show."""
    decided = [(one.id, one.undone_at) for one in session.outcomes(limit=1)]
    said = repr((asdict(session.metrics()), decided, [one.id for one in session.checkpoints()[:1]]))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _html(text: str) -> Response:
    return HTMLResponse(text, headers={"Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'"})
