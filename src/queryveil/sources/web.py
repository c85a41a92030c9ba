"""Files by https: parts of them if the server gives parts, else a private copy without a name.

Plain http is for servers on this machine only: anybody on the way could read the log, and change it.
"""

import base64
import ipaddress
import os
import tempfile
import time
import weakref
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPException, HTTPMessage
from io import BufferedReader
from typing import IO, Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from queryveil.errors import QueryveilError
from queryveil.files.folders import shown
from queryveil.sources import Parts, RemoteFile

_TIMEOUT = 60
_TRIES = 3
_CHUNK = 1 << 20


def find(address: str) -> list[RemoteFile]:
    """The one file at an address."""
    return [WebFile(address)]


class WebFile(RemoteFile):
    """A file on a web server; a query string, which may be a signature, is used but not shown."""

    def __init__(self, address: str) -> None:
        super().__init__(shown(address))
        self._request = partial(request, *checked(address))
        self._copy: IO[bytes] | None = None

    def open(self) -> BufferedReader:
        """Its bytes from the beginning."""
        if self._copy is None:
            parts = _WebParts(self)
            if parts.found:
                return BufferedReader(parts)
            self._copy = self._copied()
        return BufferedReader(_CopyParts(self._copy))

    def _copied(self) -> IO[bytes]:
        """All of it, in a file that has no name and so ends with the process."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115  # as long as this object
        weakref.finalize(self, copy.close)
        with closing(self.ask({})) as answer:
            try:
                while data := answer.read(_CHUNK):
                    copy.write(data)
                short = int(answer.headers.get("Content-Length") or copy.tell()) != copy.tell()
            except (OSError, HTTPException):
                short = True
        if short:
            raise QueryveilError(f"The server of {self} stopped in the middle of the file; read it again.")
        copy.flush()
        return copy

    def ask(self, headers: dict[str, str]) -> Any:
        """The answer to a request for it."""
        return self._request(headers={"Accept-Encoding": "identity", **headers}, what=str(self))


class _WebParts(Parts):
    """A file on a server that gives parts."""

    def __init__(self, file: WebFile) -> None:
        super().__init__()
        self._file = file
        self._size, self._tag = 0, ""
        self.found = True
        """Whether the server gives parts."""
        try:
            self._data = self._get(0, 1 << 17)
        except _WholeError:
            self.found = False

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._size

    def fetch(self, start: int, end: int) -> bytes:
        """Some of its bytes."""
        known = (self._size, self._tag)
        data = self._get(start, end)
        if (self._size, self._tag) != known:
            raise QueryveilError(f"{self._file} was changed while it was read; read it again.")
        return data

    def _get(self, start: int, end: int) -> bytes:
        for left in reversed(range(_TRIES)):
            with suppress(HTTPException, OSError), closing(self._answer(start, end)) as answer:
                asked, _, size = (answer.headers.get("Content-Range") or "").removeprefix("bytes ").partition("/")
                if not asked.startswith(f"{start}-") or not size.isdigit():
                    raise _WholeError
                self._size, self._tag = int(size), answer.headers.get("ETag") or answer.headers.get("Last-Modified", "")
                data: bytes = answer.read()
                if len(data) == min(end, self._size) - start:
                    return data
            if left:
                time.sleep(0.5)
        raise QueryveilError(f"The server of {self._file} stopped in the middle of the file; read it again.")

    def _answer(self, start: int, end: int) -> Any:
        answer = self._file.ask({"Range": f"bytes={start}-{end - 1}"})
        if answer.status != 206:
            answer.close()
            raise _WholeError
        return answer


class _WholeError(Exception):
    """The server gives only whole files."""


class _CopyParts(Parts):
    """A file of which there is a copy."""

    def __init__(self, copy: IO[bytes]) -> None:
        super().__init__()
        self._copy = copy

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return os.fstat(self._copy.fileno()).st_size

    def fetch(self, start: int, end: int) -> bytes:
        """Some of its bytes."""
        return os.pread(self._copy.fileno(), end - start, start)


def checked(address: str) -> tuple[str, dict[str, str]]:
    """An address without a user and a password, and the header that says them instead.

    Raises:
        QueryveilError: If it is not https, except for this machine.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise QueryveilError(f"{shown(address)} is not an address; write it as https://HOST/PATH.")
    if parts.scheme.lower() != "https" and not is_this_machine(host):
        raise QueryveilError(
            f"{shown(address)} would be read without encryption, so that others could see or change the log on its way;"
            " use https."
        )
    named = f"[{host}]" if ":" in host else host
    plain = SplitResult(parts.scheme, named if port is None else f"{named}:{port}", parts.path or "/", parts.query, "")
    return urlunsplit(plain), {} if parts.username is None else basic(
        unquote(parts.username), unquote(parts.password or "")
    )


def basic(user: str, password: str) -> dict[str, str]:
    """The header that says who asks."""
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Redirects(HTTPRedirectHandler):
    """Follows an answer that names another address, unless that is without encryption."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: HTTPMessage, newurl: str) -> Any:
        """The request for the other address."""
        here = is_this_machine(urlsplit(req.full_url).hostname or "")
        if not newurl.lower().startswith("https://") and not (
            here and is_this_machine(urlsplit(newurl).hostname or "")
        ):
            raise QueryveilError(f"{shown(req.full_url)} leads to an address without encryption; name another address.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def request(
    address: str,
    secret: dict[str, str],
    *,
    headers: dict[str, str],
    what: str,
    data: bytes | None = None,
    method: str | None = None,
) -> Any:
    """The answer of a server.

    Args:
        address: What `checked` returned.
        secret: Headers that no other server may see, whatever this one says.
        headers: Other headers.
        what: What is asked for, for messages.
        data: What is sent.
        method: How it is asked; by default GET. Only a question without data is asked again when it fails.
    """
    for left in reversed(range(_TRIES if data is None else 1)):
        asked = Request(address, data, headers, method=method)  # noqa: S310  # `checked` allows https and this machine
        for name, value in secret.items():
            asked.add_unredirected_header(name, value)
        try:
            return build_opener(_Redirects()).open(asked, timeout=_TIMEOUT)
        except HTTPError as error:
            if error.code == 416:  # an empty file has no part
                return error
            error.close()
            if error.code < 500 or not left:
                _refuse(error.code, what)
        except (URLError, HTTPException, OSError, ValueError) as error:
            if not left:
                why = "its certificate is not trusted" if "CERTIFICATE" in str(error) else "no answer"
                raise QueryveilError(f"The server of {what} cannot be reached ({why}); check the address.") from None
        time.sleep(0.5)
    raise AssertionError


def _refuse(code: int, what: str) -> NoReturn:
    if code in (404, 410):
        raise QueryveilError(f"There is nothing at {what}; check the address.")
    if code in (401, 403, 407):
        raise QueryveilError(f"The server of {what} refuses to show it (HTTP {code}); check the user and the password.")
    raise QueryveilError(f"The server of {what} answers with an error (HTTP {code}); try again later.")
