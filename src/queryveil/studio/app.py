"""The app: which address shows which screen. No text of a log is ever part of an address."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from queryveil import __version__
from queryveil.errors import QueryveilError
from queryveil.reports.page import chart_library, source, templates
from queryveil.studio.guard import MOST_BODY
from queryveil.studio.jobs import bug
from queryveil.studio.pages import ask, browse, choose, decide, judge, log, sign, work
from queryveil.studio.session import Session
from queryveil.studio.views import Form, Handler, View

if TYPE_CHECKING:
    from jinja2 import Environment
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

SCREENS = {"/": "Log", "/choose": "Choose", "/ask": "Ask", "/browse": "Browse", "/decide": "Decide", "/judge": "Judge"}
SCREENS |= {"/sign": "Sign"}
AUDITED = {"/": "Log", "/ask": "Ask", "/browse": "Browse", "/judge": "Judge"}
PAGES: dict[str, Handler] = {
    "/": log.page,
    "/choose": choose.page,
    "/ask": ask.page,
    "/browse": browse.page,
    "/decide": decide.page,
    "/judge": judge.page,
    "/sign": sign.page,
    "/jobs": work.jobs,
}
ACTIONS: dict[str, Handler] = {
    "/map": log.map_columns,
    "/choose/begin": choose.begin,
    "/choose/at": choose.at,
    "/choose/add": choose.add_step,
    "/choose/drop": choose.drop_step,
    "/choose/load": choose.load,
    "/ask": ask.answer,
    "/browse": browse.rows,
    "/mask": browse.mask,
    "/decide": decide.add,
    "/decide/look": decide.look,
    "/decide/quick": decide.quick,
    "/decide/drop": decide.drop,
    "/judge/compare": judge.compare,
    "/sign": sign.sign,
    "/sign/key": sign.key,
    "/jobs/start": work.start,
    "/jobs/cancel": work.cancel,
}
_AUDIT = ("/mask", "/jobs", "/jobs/start", "/jobs/cancel")
"""What an audit may do beside its screens."""
_PARTS = ("answer.html", "lines.html", "lines_waiting.html", "numbers.html", "jobs.html", "blocked.html", "hits.html")
_TICK = 0.25
_SCRIPT, _STYLE = "text/javascript", "text/css"


def app(session: Session) -> "Starlette":
    """The app of a session, without what guards it."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    made = Screens(session)
    routed = [("GET", path, PAGES[path]) for path in PAGES] + [("POST", path, ACTIONS[path]) for path in ACTIONS]
    if session.read_only:
        routed = [(verb, path, handler) for verb, path, handler in routed if path in (*AUDITED, *_AUDIT)]
    return Starlette(
        routes=[
            *(Route(path, partial(made.show, handler, path), methods=[verb]) for verb, path, handler in routed),
            Route("/events", made.events, methods=["GET"]),
            Route("/static/{name}", made.static, methods=["GET"]),
        ]
    )


class Screens:
    """Answers requests: a handler makes a view of the session, and a template a page of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._templates: Environment = templates("queryveil.studio")
        self._templates.filters["chart"] = lambda chart: json.dumps(chart, allow_nan=False)
        self._templates.globals.update(session=session, version=__version__, screens=self._screens())
        self._static = {
            "style.css": (_STYLE, source(self._templates, "style.css")),
            "charts.js": (_SCRIPT, chart_library()),
            **{name: (kind, _file(name)) for name, kind in _OWN.items()},
        }

    def _screens(self) -> dict[str, str]:
        return AUDITED if self.session.read_only else SCREENS

    async def show(self, handler: Handler, path: str, request: "Request") -> "Response":
        """Answer with what a handler makes of the session; an error is shown at the top of the page."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import HTMLResponse

        try:
            form = await _form(request)
            view = await run_in_threadpool(handler, self.session, form)
            if request.headers.get("hx-request") is None and view.template in _PARTS:  # sent before htmx was ready
                view = View("part.html", view.given | {"part": view.template}, view.after)
            return HTMLResponse(await run_in_threadpool(self._render, view, path))
        except QueryveilError as error:
            status, sentence = 422, str(error)
        except Exception as error:
            # Its message may quote the log.
            if os.environ.get("QUERYVEIL_DEBUG"):
                raise
            status, sentence = 500, bug(error)
        if request.headers.get("hx-request") is None:
            return HTMLResponse(self._render(View("error.html", {"error": sentence}), path), status)
        text = self._templates.get_template("alert.html").render(error=sentence)
        headers = {"HX-Retarget": "#alert", "HX-Reswap": "innerHTML", "HX-Reselect": ".alarm"}
        return HTMLResponse(text, status, headers)

    def _render(self, view: View, path: str) -> str:
        # A form of a screen answers with the whole screen.
        active = next((one for one in self._screens() if one != "/" and path.startswith(one)), "/")
        return self._templates.get_template(view.template).render(path=active, after=" ".join(view.after), **view.given)

    async def events(self, request: "Request") -> "Response":
        """What jobs are doing, as it happens, until the page is closed."""
        from starlette.responses import StreamingResponse

        return StreamingResponse(self._watched(request), media_type="text/event-stream")

    async def _watched(self, request: "Request") -> AsyncIterator[str]:
        before = None
        while not await request.is_disconnected():
            now = [[job.id, job.kind, job.state, job.now] for job in self.session.jobs.all]
            if now != before:
                before = now
                yield f"data: {json.dumps(now)}\n\n"
            await asyncio.sleep(_TICK)

    async def static(self, request: "Request") -> "Response":
        """A script or a style sheet of this package."""
        from starlette.responses import Response

        name = request.path_params["name"]
        if name not in self._static:
            return Response("There is no such file.", 404, media_type="text/plain")
        kind, content = self._static[name]
        return Response(content, media_type=kind)


_OWN = {"htmx.min.js": _SCRIPT, "studio.js": _SCRIPT, "studio.css": _STYLE, "icon.svg": "image/svg+xml"}


def _file(name: str) -> str:
    return (files("queryveil.studio") / "static" / name).read_text("utf-8")


async def _form(request: "Request") -> Form:
    """The fields of a form. There is no upload, so nothing but the usual encoding of forms is understood."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise QueryveilError("The request is too long; load the page again.")
    try:
        fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise QueryveilError("The request has too many fields; load the page again.") from None
    found: dict[str, Any] = {}
    for name, value in fields:
        found[name] = f"{found[name]},{value}" if name in found else value
    return found
