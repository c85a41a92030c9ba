"""The server: on this machine only, for one browser, without a line of log."""

import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.errors import QueryveilError, require
from queryveil.studio.guard import HOST, OPEN, Guard

if TYPE_CHECKING:
    from queryveil.studio.session import Session

_OPENER = "open.html"


@dataclass(frozen=True)
class Address:
    """Where an app is.

    Attributes:
        port: Its port on this machine.
        token: What opens it, once.
        stop: Ends the app.
    """

    port: int
    token: str
    stop: Callable[[], None] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"http://{HOST}:{self.port}{OPEN}?token={self.token}"


def check_packages() -> None:
    """Refuse to start without the packages that the app needs."""
    from queryveil.reports import check_packages as check_reports

    require("The studio", "starlette", "uvicorn")
    check_reports()


def serve(session: "Session", *, port: int = 0, ready: Callable[[Address], None], browser: bool = True) -> None:
    """Show an app to the browser of this user until the process is asked to stop.

    Args:
        session: What it works on.
        port: The port; 0 for any that is free.
        ready: Called with the address as soon as it can be opened.
        browser: Whether to open it in the browser.

    Raises:
        QueryveilError: If the port is taken.
    """
    check_packages()
    import uvicorn

    from queryveil.studio.app import app

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise QueryveilError(f"The port {port} cannot be used: {error.strerror}; name another.") from None
        number, token = listening.getsockname()[1], secrets.token_urlsafe(32)
        # Nothing is logged: a line could hold what somebody asked for, or what an error quotes of the log.
        config = uvicorn.Config(
            Guard(app(session), number, token),
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
            lifespan="off",
            ws="none",
        )
        server = uvicorn.Server(config)
        address = Address(number, token, lambda: setattr(server, "should_exit", True))
        opener = None
        try:
            listening.listen(64)
            with _until_asked(address.stop):
                ready(address)
                opener = _open(session, address) if browser else None
                server.run(sockets=[listening])
        finally:
            session.close()
            if opener is not None:
                opener.unlink(missing_ok=True)


def _has_screen() -> bool:
    """Whether a window can be opened; a browser in the terminal would take it away from the studio."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(session: "Session", address: Address) -> Path | None:
    """Open the browser by a private file: other users could read an address with a token in the list of processes."""
    if session.project is None or not _has_screen():
        return None
    place = session.project.file(_OPENER)
    page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">'
    session.project.write(_OPENER, page.encode())
    with suppress(webbrowser.Error):
        webbrowser.open(place.as_uri())
    return place


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def _until_asked(stop: Callable[[], None]) -> Iterator[None]:
    """Let signals end the server, and nothing else."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
