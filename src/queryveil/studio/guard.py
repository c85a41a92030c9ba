"""Who may ask: one browser, which opened the address with the token, on this machine, and no page of another site."""

import hmac
import os
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

    from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
MOST_BODY = 1 << 20
"""Bytes of a request; no form is longer."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
OPEN = "/open"
_ENTRY = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    '<link rel="icon" href="/static/icon.svg">'
    '<title>queryveil studio</title><p>Opening. <a href="/">Go on</a></p></html>'
)
_CLOSED = "This address is closed to you: open the one that 'queryveil studio' shows in the terminal."
_ELSEWHERE = "Another site or address asked for this page, so it is refused."
_ADDRESS = "No address here has a question mark; load the page again."
_LONG = "The request is too long."


class Guard:
    """Refuses every request that is not of the one browser, and closes every answer to other sites.

    A page of another site cannot read answers, but it can send requests, and a name that leads to this machine would
    make it the same site. So the address of the server must stand in `Host`, whatever a name resolves to, the origin
    of a form must be the app itself, and the cookie is not sent along with requests of other sites.

    Args:
        app: What is guarded.
        port: The port of the server.
        token: What the first address has; it opens the app once.
    """

    def __init__(self, app: "ASGIApp", port: int, token: str) -> None:
        self._app = app
        self._host = f"{HOST}:{port}"
        self._cookie = f"queryveil-{port}"
        self._token: str | None = token
        self._key = secrets.token_urlsafe(32)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: "MutableMapping[str, Any]") -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message.get("headers", ())}
                more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [
                    *message.get("headers", ()),
                    *((name, value) for name, value in more if name not in own),
                ]
            await send(message)

        headers = _headers(scope)
        refused = self._refused(scope, headers)
        if refused is None and scope["path"] == OPEN:
            await self._open(scope, guarded)
        elif refused is None and scope["query_string"]:  # it could hold a text, and addresses are kept by browsers
            await _answer(guarded, 400, _ADDRESS)
        elif refused is not None:
            await _answer(guarded, 403, refused)
        elif not self._known(headers):
            await _answer(guarded, 403, _CLOSED)
        elif not headers.get("content-length", "0").isdigit() or int(headers.get("content-length", "0")) > MOST_BODY:
            await _answer(guarded, 413, _LONG)
        else:
            try:
                await self._app(scope, receive, guarded)
            except Exception:
                # The server would log the message, which may quote the log; the app has answered already.
                if os.environ.get("QUERYVEIL_DEBUG"):
                    raise

    def _refused(self, scope: "Scope", headers: "Mapping[str, str]") -> str | None:
        """Why a request is not of the app's own pages, whatever its cookie is."""
        if headers.get("host") != self._host:
            return _ELSEWHERE
        if scope["path"] == OPEN and scope["method"] == "GET":
            return None  # a click elsewhere, or the file that opens the browser
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin == "null" and site == "same-origin":
            origin = f"http://{self._host}"  # a form sent without a script: pages here name no referrer, so no origin
        if scope["method"] not in ("GET", "HEAD") and origin is None:
            return _ELSEWHERE
        if origin not in (None, f"http://{self._host}") or site not in (None, "same-origin", "none"):
            return _ELSEWHERE
        return None

    def _known(self, headers: "Mapping[str, str]") -> bool:
        # Other servers on this machine set cookies for it too, in any form, and they must not hide this one.
        given = [pair.strip().partition("=") for pair in headers.get("cookie", "").split(";")]
        values = [value for name, _, value in given if name == self._cookie]
        return len(values) == 1 and hmac.compare_digest(values[0].encode(), self._key.encode())

    async def _open(self, scope: "Scope", send: "Send") -> None:
        """Give the cookie for the token. The page that it comes with goes on by itself, so that it is the same site."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            await _answer(send, 403, _CLOSED)
            return
        self._token = None
        cookie = f"{self._cookie}={self._key}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(send, 200, _ENTRY, kind="text/html", cookie=cookie)


def _headers(scope: "Scope") -> "Mapping[str, str]":
    """The headers of a request; one that is there twice is joined, so that it fits nothing."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


async def _answer(send: "Send", status: int, text: str, *, kind: str = "text/plain", cookie: str | None = None) -> None:
    headers = [(b"content-type", f"{kind}; charset=utf-8".encode())]
    headers += [] if cookie is None else [(b"set-cookie", cookie.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
