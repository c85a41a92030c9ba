"""The indices of User Behavior Insights on an OpenSearch server, as lines of JSON, which the format `ubi` reads.

Documents come page by page from a snapshot that the server keeps (`scroll`): what is added meanwhile is not seen, and
each document comes once. A page is never asked for twice, because the server would answer with the next one.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from http.client import HTTPException
from io import BufferedReader, RawIOBase
from typing import Any
from urllib.parse import urlsplit

from queryveil.errors import QueryveilError
from queryveil.files.folders import shown
from queryveil.sources import RemoteFile
from queryveil.sources.web import basic, checked, request

INDICES = "ubi_queries,ubi_events"
FIELDS = (
    "query_id",
    "client_id",
    "user_query",
    "timestamp",
    "action_name",
    "event_attributes.object.object_id",
    "event_attributes.position.ordinal",
    "query_response_hit_ids",
    "query_attributes.device",
    "query_attributes.country",
    "query_attributes.language",
)
"""What the format reads of a document; the rest stays on the server."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_PAGE, _KEPT = 2_000, "5m"


def find(address: str) -> list[RemoteFile]:
    """The indices that an address names, by default those of User Behavior Insights."""
    scheme, _, rest = address.partition("://")
    names = (urlsplit(f"https://{rest}").path.strip("/") or INDICES).split(",")
    if not all(map(_NAME.fullmatch, names)):
        raise QueryveilError(f"{shown(address)} must be written as {scheme}://HOST:9200/INDEX,INDEX.")
    host = f"{'http' if scheme.lower().endswith('+http') else 'https'}://{rest.partition('/')[0]}"
    return [_Index(host, f"{shown(address).partition('://')[2].partition('/')[0]}/{name}") for name in names]


class _Index(RemoteFile):
    """The documents of an index, a line each."""

    def __init__(self, host: str, named: str) -> None:
        super().__init__(f"opensearch://{named}")
        self._host, secret = checked(host)
        if not secret and os.environ.get("OPENSEARCH_USERNAME"):
            secret = basic(os.environ["OPENSEARCH_USERNAME"], os.environ.get("OPENSEARCH_PASSWORD", ""))
        self._request = partial(request, secret=secret, headers={"Content-Type": "application/json"}, what=str(self))

    def open(self) -> BufferedReader:
        """Its documents from the first."""
        return BufferedReader(_Lines(self._lines()), 1 << 20)

    def _ask(self, path: str, asked: dict[str, Any], method: str = "POST") -> dict[str, Any]:
        try:
            with closing(self._request(self._host + path, data=json.dumps(asked).encode(), method=method)) as answer:
                found = json.loads(answer.read())
        except (OSError, HTTPException, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise QueryveilError(f"The server of {self} stopped, or is not OpenSearch; read it again.")
        return found

    def _lines(self) -> Iterator[bytes]:
        asked = {"size": _PAGE, "sort": ["_doc"], "_source": FIELDS, "track_total_hits": True}
        page = self._ask(f"{self.name}/_search?scroll={_KEPT}", asked)
        seen, scroll = 0, ""
        try:
            while True:
                scroll, hits, total = self._checked(page)
                for hit in hits:
                    yield json.dumps({"_source": hit.get("_source")}).encode() + b"\n"
                seen += len(hits)
                if not hits or seen >= total:
                    break
                page = self._ask("_search/scroll", {"scroll": _KEPT, "scroll_id": scroll})
            if seen != total:
                raise QueryveilError(f"The server of {self} gave {seen:,} of {total:,} documents; read it again.")
        finally:
            with suppress(QueryveilError):  # the server forgets it in some minutes anyway
                self._ask("_search/scroll", {"scroll_id": scroll}, "DELETE")

    def _checked(self, page: dict[str, Any]) -> tuple[str, list[dict[str, Any]], int]:
        """The name of the snapshot, the documents of a page, and how many documents there are in all."""
        try:
            scroll, hits, total = page["_scroll_id"], page["hits"]["hits"], page["hits"]["total"]["value"]
            whole = not page.get("timed_out") and not page.get("_shards", {}).get("failed")
            fits = isinstance(scroll, str) and isinstance(total, int) and all(isinstance(hit, dict) for hit in hits)
        except (KeyError, TypeError, AttributeError):
            whole = fits = False
        if not whole or not fits:
            raise QueryveilError(f"The server of {self} did not answer in full; read it again.")
        return scroll, hits, total


class _Lines(RawIOBase):
    """Bytes that come in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        self._rest = self._rest or next(self._pieces, b"")
        some = self._rest[: len(buffer)]
        buffer[: len(some)] = some
        self._rest = self._rest[len(some) :]
        return len(some)

    def close(self) -> None:
        """End it, whether all of it was read or not."""
        if not self.closed:
            self._pieces.close()  # type: ignore[attr-defined]  # it is a generator
        super().close()
