"""Resolvers: from a query to the address that answers it, for which Erola and Castella-Roca (2012) use a search engine.

| resolver | where the answer comes from |
|---|---|
| Clicks | what the users of the log clicked on most |
| Sites | the first hit of a full-text search over the sites of a web directory |
| Remote | the first hit of a search engine on the network, to which every query is sent |

Pages of Wikipedia are skipped, as in the paper: one site for all topics says nothing about the topic.
"""

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import QueryveilError
from queryveil.knowledge.base import Taxonomy
from queryveil.knowledge.hosts import hosts_of, topical
from queryveil.knowledge.sites import SiteSearch
from queryveil.log import QueryLog, local

_ANSWER = 4 << 20  # bytes of an answer that are read
_HITS = 10  # that an index is asked for: the first may be of Wikipedia


class Resolver(Protocol):
    """Finds the address that answers each query of a log."""

    def resolve(self, log: QueryLog, progress: Callable[[int], None] | None = None) -> pa.Array:
        """The addresses of all queries, in the order of their ids; null where there is none."""


@dataclass(frozen=True)
class Clicks:
    """The most clicked host of every query, ties broken by the highest rank, then the first name."""

    def resolve(self, log: QueryLog, progress: Callable[[int], None] | None = None) -> pa.Array:
        """The hosts of all queries, in the order of their ids; null where nobody clicked."""
        here = local(log, "Resolving by clicks")
        if not here.has_clicks:
            raise QueryveilError("The log has no clicks to find the sites of queries by; choose another resolver.")
        hosts = hosts_of(here.url_text)
        coded = pc.if_else(topical(hosts), hosts, pa.scalar(None, pa.string())).dictionary_encode()
        names, place = coded.dictionary, coded.indices.fill_null(-1).to_numpy()
        with here.workspace() as work:
            known = work.read(pa.table({"url_id": np.arange(len(place), dtype=np.int32), "host": place}))
            rows = work.fetch(
                "SELECT c.query_id AS query_id, h.host AS host, count(*) AS clicks, min(c.rank) AS best_rank"  # noqa: S608  # a table of ours
                f" FROM clicks c JOIN {known} h ON h.url_id = c.url_id WHERE h.host >= 0 GROUP BY c.query_id, h.host"
            )
        query, host, clicks = (rows[name].to_numpy() for name in ("query_id", "host", "clicks"))
        rank = rows["best_rank"].fill_null(np.iinfo(np.int32).max).to_numpy()
        by_name = np.empty(len(names), np.int64)
        by_name[pc.array_sort_indices(names).to_numpy()] = np.arange(len(names))
        order = np.lexsort((by_name[host], rank, -clicks, query))
        first = order[np.diff(query[order], prepend=-1) > 0]
        found = np.full(here.n_queries, -1, np.int64)
        found[query[first]] = host[first]
        return names.take(pa.array(found, mask=found < 0))


@dataclass(frozen=True)
class Sites:
    """The first hit among the sites of a web directory, by BM25 over their titles and descriptions.

    Attributes:
        taxonomy: A web directory.
        threads: How many threads search.
    """

    taxonomy: Taxonomy
    threads: int | None = None

    def resolve(self, log: QueryLog, progress: Callable[[int], None] | None = None) -> pa.Array:
        """The addresses of all queries, in the order of their ids; null where no site has any of its words."""
        if self.taxonomy.sites is None:
            raise QueryveilError(f"'{self.taxonomy.name}' has no sites to search; name a web directory.")
        search = SiteSearch(self.taxonomy.sites)
        texts = local(log, "Searching in the sites of a web directory").query_text
        parts = [texts.slice(at, 5000) for at in range(0, len(texts), 5000)]
        found: list[pa.Array] = []
        with ThreadPoolExecutor(self.threads or os.cpu_count()) as pool:
            for part in pool.map(search.first, parts):
                found.append(part)
                if progress:
                    progress(sum(map(len, found)))
        return pa.concat_arrays(found)


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would send the query to a host that nobody named."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        """Refuse."""
        return


@dataclass
class Remote:
    """The first hit of a search engine: an index of OpenSearch or Elasticsearch, or one with the interface of SearXNG.

    An address that ends in `/_search`, such as http://127.0.0.1:9200/pages/_search, is that of an index. All its fields
    are searched, and its documents have their address in a field `url`. Any other address is asked as SearXNG is, with
    `GET URL/search?q=...&format=json`.

    Every distinct query of the log is sent to it. Answers are kept in a file, by the digest of the query and without
    its text, so that an interrupted run continues where it stopped.

    Attributes:
        url: The address of the engine.
        cache: The file for the answers.
        rate: Most requests per second.
        timeout: Seconds to wait for an answer.
        retries: How often to try again, with twice the wait each time.
        wait: Seconds before the first retry.
    """

    url: str
    cache: str | Path
    rate: float = 1.0
    timeout: float = 10.0
    retries: int = 4
    wait: float = 1.0
    _next: float = field(default=0.0, repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
            if good and parts.username is not None:
                raise QueryveilError("The address of a search engine must not hold a user or a password.")
        except ValueError:
            good = False
        if not good or not re.fullmatch(r"[!-~]+", self.url):
            raise QueryveilError(f"'{self.url}' is not the address of a search engine, such as http://127.0.0.1:8888.")
        if not (self.rate > 0 and self.timeout > 0):
            raise QueryveilError("The rate and the timeout of a search engine must be more than 0.")

    def resolve(self, log: QueryLog, progress: Callable[[int], None] | None = None) -> pa.Array:
        """The addresses of all queries, in the order of their ids; null where the engine has none."""
        texts = local(log, "Asking a search engine").query_text
        found: list[str | None] = []
        with _Answers(Path(self.cache), self.url) as answers:
            for query in _texts(texts):
                known, address = answers.get(query)
                if not known:
                    try:
                        address = self._ask(query)
                    except QueryveilError as error:
                        done = f"{len(found):,} of {len(texts):,} queries are answered and kept in {self.cache}"
                        raise QueryveilError(
                            f"{str(error).rstrip('.')}; {done}, so run it again to continue."
                        ) from None
                    answers.put(query, address)
                found.append(address)
                if progress and len(found) % 10 == 0:
                    progress(len(found))
        return pa.array(found, pa.string())

    @property
    def _is_index(self) -> bool:
        return urlsplit(self.url).path.rstrip("/").endswith("/_search")

    def _request(self, query: str) -> Request:
        accept = {"Accept": "application/json"}
        base = self.url.rstrip("/")
        if not self._is_index:
            address = f"{base}/search?{urlencode({'q': query, 'format': 'json'})}"
            return Request(address, headers=accept)  # noqa: S310  # the address was checked
        # A query in a body is words, and never syntax of the engine.
        asked = {"size": _HITS, "_source": ["url"], "query": {"multi_match": {"query": query, "lenient": True}}}
        head = accept | {"Content-Type": "application/json"}
        return Request(base, json.dumps(asked).encode(), head, method="POST")  # noqa: S310

    def _ask(self, query: str) -> str | None:
        what = ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(self.wait * 2 ** (attempt - 1))
            time.sleep(max(0.0, self._next - time.monotonic()))
            self._next = time.monotonic() + 1 / self.rate
            try:
                return _first(self._read(self._get(self._request(query))))
            except HTTPError as error:
                error.close()
                if error.code not in (408, 425, 429) and error.code < 500:
                    json_off = error.code == 403 and not self._is_index
                    hint = "allow format json in its settings" if json_off else "check the address"
                    raise QueryveilError(
                        f"The search engine at {self.url} answers with status {error.code}; {hint}."
                    ) from None
                what = f"answers with status {error.code}"
            except (TimeoutError, URLError) as error:
                late = isinstance(getattr(error, "reason", error), TimeoutError)
                what = f"does not answer within {self.timeout:g} seconds" if late else "cannot be reached"
            except (OSError, HTTPException):
                what = "closes the connection, or does not use HTTP"
        raise QueryveilError(f"The search engine at {self.url} {what}, also after {self.retries} more tries.")

    def _get(self, request: Request) -> bytes:
        """The complete answer, within the timeout."""
        # Neither a redirect nor a proxy of the environment: both would send the query to a host that nobody named.
        opener = build_opener(_NoRedirect, ProxyHandler({}))
        end = time.monotonic() + self.timeout
        with opener.open(request, timeout=self.timeout) as answer:
            data = b""
            while part := answer.read1(1 << 16):
                data += part
                if time.monotonic() > end:
                    raise TimeoutError
                if len(data) > _ANSWER:
                    raise QueryveilError(
                        f"The search engine at {self.url} answers with over {_ANSWER >> 20} MiB; check the address."
                    )
            if answer.length:
                raise ConnectionResetError  # it promised more
        return data

    def _read(self, data: bytes) -> list[Any]:
        """The results, best first."""
        results: Any = None
        try:
            found = json.loads(data)
            results = [hit["_source"] for hit in found["hits"]["hits"]] if self._is_index else found["results"]
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        if not isinstance(results, list):
            known = "the hits of an index" if self._is_index else "SearXNG's JSON"
            raise QueryveilError(
                f"The search engine at {self.url} answers with something that is not {known}; check the address."
            )
        return results


def _first(results: list[Any]) -> str | None:
    """The first address that is not skipped."""
    urls = [result.get("url") for result in results if isinstance(result, dict)]
    addresses = [url for url in urls if isinstance(url, str) and re.match("https?://", url)]
    good = topical(hosts_of(pa.array(addresses, pa.string()))).to_pylist()
    return next((address for address, fits in zip(addresses, good, strict=True) if fits), None)


def _texts(texts: pa.Array) -> Iterator[str]:
    for at in range(0, len(texts), 10_000):
        yield from texts.slice(at, 10_000).to_pylist()


class _Answers:
    """A file of answers, which only its owner may read."""

    def __init__(self, path: Path, url: str) -> None:
        if not path.parent.is_dir():
            raise QueryveilError(f"The folder {path.parent} does not exist; make it first.")
        self._path, self._url = path, url.rstrip("/")

    def __enter__(self) -> "_Answers":
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._path.chmod(0o600)  # also if it was there
            self._file = sqlite3.connect(self._path, isolation_level=None)
            self._file.execute("CREATE TABLE IF NOT EXISTS answers (query BLOB PRIMARY KEY, url TEXT) WITHOUT ROWID")
            self.get("")
        except (OSError, sqlite3.Error):
            raise QueryveilError(f"{self._path} cannot be used for answers; name another file, or a new one.") from None
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def _key(self, query: str) -> bytes:
        return hashlib.sha256(f"{self._url}\n{query}".encode()).digest()

    def get(self, query: str) -> tuple[bool, str | None]:
        """Whether the answer is known, and what it is."""
        row = self._file.execute("SELECT url FROM answers WHERE query = ?", (self._key(query),)).fetchone()
        return row is not None, row[0] if row else None

    def put(self, query: str, address: str | None) -> None:
        """Keep an answer."""
        self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (self._key(query), address))
