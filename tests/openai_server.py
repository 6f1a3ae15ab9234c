"""A server on loopback that speaks OpenAI's chat-completions protocol, refuses what the real one refuses, and records.

    with OpenAIServer(window_tokens=8000, script=[calls("look_up", {"order": 1}), "Done."]) as server:
        model = ChatOpenAI(base_url=server.base_url, api_key="none", model="loopback", max_retries=0)

A reply is a text, a `Reply` (text and tool calls), a `Failure` or a `Silence`; the script is a list (the last one is
repeated) or a function from the request's body. Requests that break the protocol, or are over the window, take no reply
from the script.
"""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

from tests.openai_rules import ProtocolError, check_request

_CHARS_PER_TOKEN = 4
_MESSAGE_TOKENS = 4
_PRIMING_TOKENS = 3
_CHUNK_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says: a text, tool calls as (name, arguments), or both; nothing at all is an empty answer."""

    text: str = ""
    tool_calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error in OpenAI's form."""

    status: int
    message: str
    code: str | None = None
    kind: str = "invalid_request_error"
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No answer for this long; then the connection is closed without one."""

    seconds: float


Scripted: TypeAlias = str | Reply | Failure | Silence
Script: TypeAlias = Sequence[Scripted] | Callable[[dict[str, Any]], Scripted]

EMPTY = Reply()
RATE_LIMITED = Failure(
    status=429,
    message="Rate limit reached for loopback on requests per min (RPM): Limit 3. Please try again in 20s.",
    code="rate_limit_exceeded",
    kind="requests",
    retry_after_seconds=20,
)
SERVER_ERROR = Failure(
    status=500, message="The server had an error while processing your request.", kind="server_error"
)


def calls(name: str, *arguments: dict[str, Any], text: str = "") -> Reply:
    """A reply that calls one tool, once for each of `arguments`, in parallel."""
    return Reply(text=text, tool_calls=tuple((name, one) for one in arguments))


def overflow(limit_tokens: int, sent_tokens: int) -> Failure:
    """What OpenAI says of a request that is over the model's window."""
    return Failure(
        status=400,
        message=f"This model's maximum context length is {limit_tokens} tokens. However, your messages resulted in "
        f"{sent_tokens} tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
    )


def tokens_of_text(text: str) -> int:
    """A token for four characters, rounded up: the server's own idea, which no client knows."""
    return math.ceil(len(text) / _CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A request as it came, and what became of it."""

    body: dict[str, Any]
    tokens: int
    status: int
    error: str | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages, as OpenAI's dicts."""
        return list(self.body.get("messages") or ())

    @property
    def text(self) -> str:
        """All that its messages say, for looking something up."""
        return json.dumps(self.messages, ensure_ascii=False)


@dataclass(slots=True, kw_only=True)
class _State:
    """What the threads of the server share."""

    script: Script
    window_tokens: int | None
    count_text: Callable[[str], int]
    system_first: bool
    lock: threading.Lock = field(default_factory=threading.Lock)
    closing: threading.Event = field(default_factory=threading.Event)
    recorded: list[Recorded] = field(default_factory=list)
    taken: int = 0

    def tokens(self, body: dict[str, Any]) -> int:
        """Tokens of a request: messages, calls and tool schemas."""
        total = _PRIMING_TOKENS
        for message in body.get("messages") or ():
            said = {key: value for key, value in message.items() if key not in {"role", "content"}}
            content = message.get("content")
            text = content if isinstance(content, str) else json.dumps(content or "", ensure_ascii=False)
            total += _MESSAGE_TOKENS + self.count_text(text)
            total += self.count_text(json.dumps(said, ensure_ascii=False)) if said else 0
        for tool in body.get("tools") or ():
            total += self.count_text(json.dumps(tool, ensure_ascii=False))
        return total

    def reply(self, body: dict[str, Any]) -> Scripted:
        """The next reply of the script."""
        if callable(self.script):
            return self.script(body)
        with self.lock:
            number, self.taken = self.taken, self.taken + 1
        return self.script[min(number, len(self.script) - 1)]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """Clients that may wait to be let in: the usual 5 refuse some of twenty that come at once."""


class OpenAIServer:
    """The server. Starts with `with`, on a free port of loopback.

    Args:
        script: Its replies.
        window_tokens: Requests with more tokens are refused with `context_length_exceeded`; `None` takes all.
        count_text: Tokens of a text, as this provider counts.
        system_first: Refuse system messages behind the first place too, as Google, Mistral and others do.
    """

    def __init__(
        self,
        *,
        script: Script = ("ok",),
        window_tokens: int | None = None,
        count_text: Callable[[str], int] = tokens_of_text,
        system_first: bool = True,
    ) -> None:
        self._state = _State(
            script=script, window_tokens=window_tokens, count_text=count_text, system_first=system_first
        )
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        state = self._state

        class Handler(_Handler):
            shared = state

        self._http = _Http(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, name="openai-loopback", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._state.closing.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    @property
    def base_url(self) -> str:
        """What a client is given."""
        if self._http is None:
            msg = "the server has not started: use it in a with statement"
            raise RuntimeError(msg)
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far, refused ones included."""
        with self._state.lock:
            return list(self._state.recorded)

    @property
    def answered(self) -> list[Recorded]:
        """Requests that got an answer."""
        return [one for one in self.requests if one.error is None]

    def clear(self) -> None:
        """Forget the requests so far."""
        with self._state.lock:
            self._state.recorded.clear()

    def play(self, script: Script) -> None:
        """Go on with another script, from its beginning."""
        with self._state.lock:
            self._state.script, self._state.taken = script, 0

    def set_window(self, tokens: int | None) -> None:
        """Change the window."""
        self._state.window_tokens = tokens


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    shared: _State
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer one request."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith("/chat/completions"):
            self._refuse(Failure(status=404, message=f"Unknown request URL: POST {self.path}", code="unknown_url"))
            return
        body = json.loads(raw)
        tokens, said = 0, Failure(status=400, message="not read")
        try:
            check_request(body, system_first=self.shared.system_first)
            tokens = self.shared.tokens(body)
            window = self.shared.window_tokens
            said = overflow(window, tokens) if window is not None and tokens > window else self.shared.reply(body)
        except ProtocolError as error:
            said = Failure(status=400, message=str(error), code=error.code)
        error_text = said.message if isinstance(said, Failure) else "silence" if isinstance(said, Silence) else None
        status = said.status if isinstance(said, Failure) else 0 if isinstance(said, Silence) else 200
        with self.shared.lock:
            self.shared.recorded.append(Recorded(body=body, tokens=tokens, status=status, error=error_text))
        if isinstance(said, Silence):
            self.shared.closing.wait(said.seconds)
            self.close_connection = True
        elif isinstance(said, Failure):
            self._refuse(said)
        else:
            reply = Reply(text=said) if isinstance(said, str) else said
            send = self._stream if body.get("stream") else self._answer
            send(body, reply, tokens)

    def _refuse(self, failure: Failure) -> None:
        error = {"message": failure.message, "type": failure.kind, "param": None, "code": failure.code}
        extra = {"Retry-After": str(failure.retry_after_seconds)} if failure.retry_after_seconds is not None else {}
        self._json(failure.status, {"error": error}, extra)

    def _json(self, status: int, value: dict[str, Any], extra: dict[str, str] | None = None) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(raw)), **(extra or {})}
        for name, said in headers.items():
            self.send_header(name, said)
        self.end_headers()
        self.wfile.write(raw)

    def _usage(self, reply: Reply, tokens: int) -> dict[str, int]:
        said = reply.text + json.dumps([arguments for _, arguments in reply.tool_calls] or "")
        written = self.shared.count_text(said)
        return {"prompt_tokens": tokens, "completion_tokens": written, "total_tokens": tokens + written}

    def _head(self, body: dict[str, Any], kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": kind,
            "created": int(time.time()),
            "model": body.get("model"),
            "system_fingerprint": None,
        }

    def _answer(self, body: dict[str, Any], reply: Reply, tokens: int) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.tool_calls:
            message["tool_calls"] = _calls(reply)
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}
        head = self._head(body, "chat.completion")
        self._json(200, head | {"choices": [choice], "usage": self._usage(reply, tokens)})

    def _stream(self, body: dict[str, Any], reply: Reply, tokens: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        head = self._head(body, "chat.completion.chunk")
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        pieces = range(0, len(reply.text), _CHUNK_CHARS)
        deltas += [{"content": reply.text[start : start + _CHUNK_CHARS]} for start in pieces]
        for place, call in enumerate(_calls(reply)):
            deltas += _call_deltas(place, call)
        for delta in deltas:
            self._event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self._event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            self._event(head | {"choices": [], "usage": self._usage(reply, tokens)})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{uuid.uuid4().hex[:24]}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for name, arguments in reply.tool_calls
    ]


def _call_deltas(place: int, call: dict[str, Any]) -> list[dict[str, Any]]:
    """A call as it is streamed: its name first, then its arguments in pieces."""
    arguments = call["function"]["arguments"]
    opening = call | {"index": place, "function": call["function"] | {"arguments": ""}}
    pieces = [arguments[start : start + _CHUNK_CHARS] for start in range(0, len(arguments), _CHUNK_CHARS)]
    parts = [{"index": place, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [one]} for one in (opening, *parts)]


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.tool_calls else "stop"
