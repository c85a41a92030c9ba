"""Full-text search over the titles and descriptions of the sites of a web directory (BM25, by tantivy)."""

import re
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from queryveil.errors import QueryveilError, require
from queryveil.knowledge.hosts import hosts_of, topical

_HEAP = 256 << 20


def _schema() -> Any:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
    builder.add_text_field("url", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


class SiteWriter:
    """Writes the index; it is complete when the context ends without an error."""

    def __init__(self, folder: Path) -> None:
        require("A search for sites", "tantivy")
        import tantivy

        folder.mkdir()
        self._tantivy = tantivy
        self._writer = tantivy.Index(_schema(), path=str(folder)).writer(_HEAP, 1)

    def __enter__(self) -> "SiteWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._writer.commit()
        else:
            self._writer.rollback()
        self._writer.wait_merging_threads()  # they write to the folder, which is about to be renamed or removed

    def add(self, sites: pa.RecordBatch) -> None:
        """Add sites: columns url, title and text."""
        document = self._tantivy.Document
        add = self._writer.add_document
        for url, title, text in zip(*(sites[name].to_pylist() for name in ("url", "title", "text")), strict=True):
            if title or text:
                add(document(text=f"{title} {text}", url=url))


_OTHER = re.compile(r"[\W_]+")


class SiteSearch:
    """Searches in the index.

    Args:
        folder: Its folder.
    """

    def __init__(self, folder: Path) -> None:
        require("A search for sites", "tantivy")
        import tantivy

        self._folder = folder
        try:
            self._index = tantivy.Index.open(str(folder))
            self._searcher = self._index.searcher()
        except Exception:
            raise self._damaged() from None
        if self._searcher.num_docs == 0:
            raise QueryveilError(
                f"The web directory {folder.parent} has no titles or descriptions to search; use another resolver."
            )

    def first(self, queries: pa.Array) -> pa.Array:
        """The address of the best site for each query; null where no site has a word of it."""
        try:
            return pa.array([self._best(query) for query in queries.to_pylist()], pa.string())
        except BaseException as error:
            # A panic of the library is not an Exception; an interrupt is passed on.
            if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
                raise
            raise self._damaged() from None

    def _damaged(self) -> QueryveilError:
        return QueryveilError(f"The web directory {self._folder.parent} is damaged; build it again from the dump.")

    def _best(self, query: str) -> str | None:
        words = _OTHER.sub(" ", query).strip()
        if not words:
            return None
        parsed = self._index.parse_query(words, ["text"])
        for most in (3, 30):
            hits = self._searcher.search(parsed, most, count=False).hits
            found = [str(self._searcher.doc(place).get_first("url")) for _, place in hits]
            good = topical(hosts_of(pa.array(found, pa.string()))).to_pylist()
            for url, fits in zip(found, good, strict=True):
                if fits:
                    return url
            if len(hits) < most:
                return None
        return None
