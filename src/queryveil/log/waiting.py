"""Events that wait: the rows of a log as arrays that are stored in a folder, joined with other rows, and thinned out.

A series of releases keeps what it has not published yet. Names of users are replaced by keyed digests on the way in,
because here they are only compared.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.arrays import offsets, ranges
from queryveil.engines import DuckDB
from queryveil.engines.memory import reserve
from queryveil.errors import QueryveilError
from queryveil.formats.rows import BadRows
from queryveil.kernels.types import Bools, Ints, Longs, ULongs
from queryveil.log.local import LocalLog, Tokens
from queryveil.log.stats import Scrub, SeriesPlace
from queryveil.text import Language
from queryveil.text.arrays import byte_spans
from queryveil.text.columns import Digests

_TEXTS = ("user", "query", "url", "word")
_EVENTS = ("user", "query", "time", "since")
_CLICKS = ("event", "rank", "url")
SOME_VIEWS = (
    "Some of the waiting events have views, and others have clicks alone; read all logs of a series with the results"
    " that were shown, or all without."
)
SAME_HALF = (
    "Two different texts have the same half of a digest, which does not happen by chance: somebody made them so; leave"
    " out the rows of one of them."
)


@dataclass(frozen=True)
class Waiting:
    """The rows of a log as whole numbers, with the texts of their ids in the order of the texts' digests.

    Attributes:
        events: By name a value per event, ordered by user and time: user, query, time (microseconds) and since, the
            number of the period that it came in. -1 is missing, and `MISSING` of `kernels.times` a missing time.
        extras: For each extra column an id per event.
        clicks: By name a value per click: event, rank, url. If the log has views, they are here, with clicked (0, 1).
        texts: The texts of users, queries, addresses and words.
        digests: The two halves of the digest of each of these texts.
        values: The texts of each extra column.
        starts: Where the words of each query begin in `words`, and where the last end.
        words: The word ids of each query.
    """

    events: Mapping[str, NDArray[Any]]
    extras: Mapping[str, Ints]
    clicks: Mapping[str, NDArray[Any]]
    texts: Mapping[str, pa.Array]
    digests: Mapping[str, Digests]
    values: Mapping[str, pa.Array]
    starts: Longs
    words: Ints

    def __len__(self) -> int:
        return len(self.events["user"])

    @property
    def has_views(self) -> bool:
        """Whether `clicks` are all results that were shown."""
        return "clicked" in self.clicks

    @property
    def timed(self) -> Bools:
        """Which events have a time."""
        from queryveil.kernels.times import MISSING

        found: Bools = self.events["time"] != MISSING
        return found

    def kept(self, stays: Bools) -> "Waiting":
        """Some of the events, with the texts that they need."""
        if stays.all():
            return self
        new_event = np.cumsum(stays) - 1
        events = {name: values[stays] for name, values in self.events.items()}
        extras = {name: ids[stays] for name, ids in self.extras.items()}
        clicked = stays[self.clicks["event"]]
        clicks = {name: values[clicked] for name, values in self.clicks.items()}
        clicks["event"] = new_event[clicks["event"]].astype(np.int32)
        there, values = {}, dict(self.values)
        events["user"], there["user"] = _used(events["user"], len(self.texts["user"]))
        events["query"], there["query"] = _used(events["query"], len(self.texts["query"]))
        clicks["url"], there["url"] = _used(clicks["url"], len(self.texts["url"]))
        for name in extras:
            extras[name], used = _used(extras[name], len(values[name]))
            values[name] = values[name].filter(pa.array(used))
        sizes = np.diff(self.starts)
        words, there["word"] = _used(self.words[np.repeat(there["query"], sizes)], len(self.texts["word"]))
        texts = {name: text.filter(pa.array(there[name])) for name, text in self.texts.items()}
        digests = {name: (low[there[name]], high[there[name]]) for name, (low, high) in self.digests.items()}
        return Waiting(events, extras, clicks, texts, digests, values, offsets(sizes[there["query"]]), words)

    def in_order(self) -> "Waiting":
        """The same with users in the order of their digests, and events in the order of users."""
        from queryveil.kernels.order import digest_order

        low, high = _digests(self.texts["user"])
        by_digest = digest_order(low, high)
        new_user = _inverse(by_digest)
        user = new_user[self.events["user"]]
        order = np.argsort(user, kind="stable")  # the events of a user are in order already
        event = _inverse(order)[self.clicks["event"]]
        by_event = np.argsort(event, kind="stable")
        return replace(
            self,
            events={name: (user if name == "user" else values)[order] for name, values in self.events.items()},
            extras={name: ids[order] for name, ids in self.extras.items()},
            clicks={name: (event if name == "event" else values)[by_event] for name, values in self.clicks.items()},
            texts={**self.texts, "user": self.texts["user"].take(pa.array(by_digest))},
            digests={**self.digests, "user": (low[by_digest], high[by_digest])},
        )

    def joined(self, others: "Waiting") -> "Waiting":
        """These events and others, most or all of them later."""
        if len(self) == 0 or len(others) == 0:
            return others if len(self) == 0 else self
        with_clicks = [one for one in (self, others) if len(one.clicks["event"])]
        if len({one.has_views for one in with_clicks}) > 1:
            raise QueryveilError(SOME_VIEWS)
        reserve(100 * (len(self) + len(others)), "The waiting events")
        unions = {
            name: _union(self.texts[name], self.digests[name], others.texts[name], others.digests[name])
            for name in _TEXTS
        }
        query = unions["query"]
        order = _places(unions["user"].of_first[self.events["user"]], unions["user"].of_second[others.events["user"]])
        if not _all_later(self, others):
            order = _sorted_places(self, others, unions["user"], query)
        events = {name: order.both(self.events[name], others.events[name]) for name in ("time", "since")}
        for name in ("user", "query"):
            events[name] = order.both(*unions[name].both(self.events[name], others.events[name]))
        extras, values = {}, {}
        for name in {**self.extras, **others.extras}:
            ours, theirs = (one.extras.get(name, np.full(len(one), -1, np.int32)) for one in (self, others))
            first, second = (one.values.get(name, _NOTHING) for one in (self, others))
            union = _union(first, _digests(first), second, _digests(second))
            extras[name], values[name] = order.both(*union.both(ours, theirs)), union.text
        on = order.first[self.clicks["event"]], order.second[others.clicks["event"]]
        click_order = _places(*on)
        clicks = {"event": click_order.both(*on), "rank": click_order.both(self.clicks["rank"], others.clicks["rank"])}
        clicks["url"] = click_order.both(*unions["url"].both(self.clicks["url"], others.clicks["url"]))
        if self.has_views or others.has_views:
            clicks["clicked"] = click_order.both(*(one.clicks.get("clicked", _NO_VIEWS) for one in (self, others)))
        word = np.concatenate(unions["word"].both(self.words, others.words))
        begin = np.concatenate([self.starts[:-1], others.starts[:-1] + len(self.words)])[query.source]
        sizes = np.concatenate([np.diff(self.starts), np.diff(others.starts)])[query.source]
        texts = {name: union.text for name, union in unions.items()}
        digests = {name: union.digests for name, union in unions.items()}
        return Waiting(events, extras, clicks, texts, digests, values, offsets(sizes), word[ranges(begin, sizes)])

    def as_log(
        self,
        engine: DuckDB,
        *,
        content: bytes,
        language: Language,
        scrub: Scrub | None,
        series: SeriesPlace | None,
    ) -> LocalLog:
        """A log of these events.

        Args:
            engine: Where its tables are made.
            content: What takes the place of the digest of its rows.
            language: The language of its queries.
            scrub: How the events were scrubbed before they came here.
            series: Where in its series a release of the log is.
        """
        from queryveil.kernels.times import MISSING

        user, query, event = self.events["user"], self.events["query"], self.clicks["event"]
        events = {
            "event_id": pa.array(np.arange(len(self), dtype=np.int32)),
            "user_id": pa.array(user),
            "query_id": pa.array(query),
            "time": _nullable(self.events["time"], MISSING).view(pa.timestamp("us")),
            **{f"{name} id": pa.array(ids) for name, ids in self.extras.items()},
        }
        clicks = {
            "event_id": pa.array(event),
            "user_id": pa.array(user[event]),
            "query_id": pa.array(query[event]),
            "rank": _nullable(self.clicks["rank"], -1),
            "url_id": _nullable(self.clicks["url"], -1),
        }
        with_results = int(np.count_nonzero(np.diff(event))) + 1 if len(event) else 0
        results, views = pa.table(clicks), None
        if self.has_views:
            views = results.append_column("clicked", pa.array(self.clicks["clicked"]))
            results = results.filter(pa.array(self.clicks["clicked"] == 1))
        return LocalLog(
            engine=engine,
            events=pa.table(events),
            clicks=results,
            views=views,
            query_text=self.texts["query"],
            url_text=self.texts["url"],
            user_text=self.texts["user"],
            user_digest=self.digests["user"][0],
            first_seen=np.arange(len(self.texts["user"]), dtype=np.int32),
            extras=self.values,
            tokens=Tokens(self.starts, self.words, self.texts["word"]),
            content=content,
            rows=len(self) + len(event) - with_results,
            bad_rows=BadRows(),
            empty_rows=0,
            language=language,
            scrub=scrub,
            series=series,
        )

    def save(self, folder: Path) -> None:
        """Write them into a folder, which is made."""
        folder.mkdir(0o700)
        _write(folder / "events.arrow", self.events)
        _write(folder / "clicks.arrow", self.clicks)
        _write(folder / "words.arrow", {"word": self.words})
        _write(folder / "starts.arrow", {"start": self.starts})
        names = sorted(self.extras)
        for name, text in self.texts.items():
            low, high = self.digests[name]
            _write(folder / f"text-{name}.arrow", {"text": text, "low": low, "high": high})
        for number, name in enumerate(names):  # a name may be anything, so it is no name of a file
            _write(folder / f"extra-{number}.arrow", {"id": self.extras[name]})
            _write(folder / f"value-{number}.arrow", {"text": self.values[name]})
        (folder / "extras.json").write_text(json.dumps(names), "utf-8")


_NOTHING = pa.array([], pa.large_string())
_NO_VIEWS = np.empty(0, np.int8)


def _clicked(names: Sequence[str]) -> list[str]:
    """The column of views that clicks lack, if it is there."""
    return [name for name in names if name == "clicked"]


def load_waiting(folder: Path) -> Waiting:
    """The events that `Waiting.save` wrote.

    Raises:
        QueryveilError: If they are damaged.
    """
    try:
        names = json.loads((folder / "extras.json").read_text("utf-8"))
        events, clicks = (_read(folder / f"{name}.arrow") for name in ("events", "clicks"))
        made = Waiting(
            events={name: events[name].to_numpy() for name in _EVENTS},
            extras={name: _read(folder / f"extra-{at}.arrow")["id"].to_numpy() for at, name in enumerate(names)},
            clicks={name: clicks[name].to_numpy() for name in (*_CLICKS, *_clicked(clicks.column_names))},
            texts={name: _text(folder / f"text-{name}.arrow") for name in _TEXTS},
            digests={name: _halves(folder / f"text-{name}.arrow") for name in _TEXTS},
            values={name: _text(folder / f"value-{at}.arrow") for at, name in enumerate(names)},
            starts=_read(folder / "starts.arrow")["start"].to_numpy(),
            words=_read(folder / "words.arrow")["word"].to_numpy(),
        )
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        raise QueryveilError(f"The waiting events in {folder} are damaged; restore the ledger from a backup.") from None
    return made


def waiting_of(log: LocalLog, key: Sequence[int], since: int) -> Waiting:
    """The events of a log, with keyed digests instead of the names of users.

    Args:
        log: The log.
        key: Two secret numbers below 2**64.
        since: The number of the period that they come in.
    """
    from queryveil.kernels.times import MISSING

    columns = {
        "user": log.events["user_id"].to_numpy(),
        "query": log.events["query_id"].to_numpy(),
        "time": pc.fill_null(log.events["time"].cast(pa.int64()), MISSING).to_numpy(),
        "since": np.full(len(log.events), since, np.int32),
    }
    results = log.clicks if log.views is None else log.views
    clicks = {
        "event": results["event_id"].to_numpy(),
        "rank": pc.fill_null(results["rank"], -1).to_numpy().astype(np.int32),
        "url": pc.fill_null(results["url_id"], -1).to_numpy().astype(np.int32),
        **{name: results[name].to_numpy() for name in _clicked(results.column_names)},
    }
    texts = {
        "user": keyed_names(log.user_text, key),
        "query": log.query_text,
        "url": log.url_text,
        "word": log.tokens.text.cast(pa.large_string()),
    }
    extras = {name: log.events[f"{name} id"].to_numpy() for name in log.extras}
    digests = {name: _digests(text) for name, text in texts.items() if name != "user"}
    made = Waiting(columns, extras, clicks, texts, digests, log.extras, log.tokens.start, log.tokens.word)
    return made.in_order()


def keyed_names(names: pa.Array, key: Sequence[int]) -> pa.Array:
    """A keyed digest of each name, as 32 hexadecimal digits."""
    from queryveil.kernels.digest import digests

    low, high = digests(*byte_spans(names), *(np.uint64(part) for part in key))
    digits = np.frombuffer(np.stack([low, high], axis=1).astype(">u8").tobytes().hex().encode(), np.uint8)
    starts = np.arange(len(names) + 1, dtype=np.int64) * 32
    return pa.Array.from_buffers(pa.large_string(), len(names), [None, pa.py_buffer(starts), pa.py_buffer(digits)])


def _all_later(first: Waiting, second: Waiting) -> bool:
    """Whether every event of the second has a time after all times of the first, so that it comes after them."""
    times = first.events["time"][first.timed]
    return bool(second.timed.all() and (len(times) == 0 or second.events["time"].min() > times.max()))


@dataclass(frozen=True)
class _Places:
    """Where the members of two lists are when they are one."""

    first: Ints
    second: Ints

    def both(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        """The values of both lists as one."""
        made = np.empty(len(first) + len(second), first.dtype)
        made[self.first], made[self.second] = first, second
        return made


def _places(first: NDArray[Any], second: NDArray[Any]) -> _Places:
    """Two ascending lists as one; of equal numbers, those of the first list come first."""
    at = np.searchsorted(first, second, "right")
    shift = np.cumsum(np.bincount(at, minlength=len(first) + 1)[: len(first)])
    of_first = np.arange(len(first)) + shift
    return _Places(of_first.astype(np.int32), (at + np.arange(len(second))).astype(np.int32))


def _sorted_places(first: Waiting, second: Waiting, users: "_Union", queries: "_Union") -> _Places:
    """Events in the order of user, time and query."""
    user, query = (
        np.concatenate(union.both(first.events[name], second.events[name]))
        for name, union in (("user", users), ("query", queries))
    )
    order = np.lexsort((query, np.concatenate([first.events["time"], second.events["time"]]), user))
    place = _inverse(order)
    return _Places(place[: len(first)], place[len(first) :])


@dataclass(frozen=True)
class _Union:
    """The distinct texts of two lists that are in the order of digests, in that order."""

    text: pa.Array
    digests: Digests
    of_first: Ints
    """The new id of each text of the first list."""
    of_second: Ints
    source: Longs
    """Where each text is in both lists, one after the other."""

    def both(self, first: Ints, second: Ints) -> tuple[Ints, Ints]:
        """Ids of both lists as new ids; -1 stays."""
        return tuple(  # type: ignore[return-value]
            np.append(new, np.int32(-1))[ids] for new, ids in ((self.of_first, first), (self.of_second, second))
        )


def _digests(texts: pa.Array) -> Digests:
    from queryveil.kernels.digest import digests

    low, high = digests(*byte_spans(texts))
    return low, high


def _union(first: pa.Array, of_first: Digests, second: pa.Array, of_second: Digests) -> _Union:
    (low, high), (low2, high2) = of_first, of_second
    if _repeats(low) or _repeats(low2):
        return _sorted_union(first, of_first, second, of_second)
    at = np.searchsorted(low, low2)
    near = np.minimum(at, max(len(low) - 1, 0))
    hit = (low[near] == low2) if len(low) else np.zeros(len(low2), np.bool_)
    same = hit & (high[near] == high2) if len(low) else hit
    if (hit & ~same).any():
        return _sorted_union(first, of_first, second, of_second)
    fresh = ~same
    places = _places(low, low2[fresh])
    new_ids = np.empty(len(low2), np.int32)
    new_ids[fresh] = places.second
    new_ids[same] = places.first[near[same]]
    source = places.both(np.arange(len(low)), len(low) + np.flatnonzero(fresh))
    text = pa.concat_arrays([first, second]).take(pa.array(source))
    both = places.both(low, low2[fresh]), places.both(high, high2[fresh])
    return _Union(text, both, places.first, new_ids, source)


def _sorted_union(first: pa.Array, of_first: Digests, second: pa.Array, of_second: Digests) -> _Union:
    """The same where different digests share a half, which happens only if somebody makes such texts."""
    from queryveil.kernels.order import digest_order

    low, high = (np.concatenate(halves) for halves in zip(of_first, of_second, strict=True))
    order = digest_order(low, high)
    new = np.append(True, (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0))[: len(order)]
    ids = np.empty(len(order), np.int32)
    ids[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    source = order[new]
    text = pa.concat_arrays([first, second]).take(pa.array(source))
    return _Union(text, (low[source], high[source]), ids[: len(first)], ids[len(first) :], source)


def _inverse(order: Longs) -> Ints:
    """Where each member went that an order put elsewhere."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def _repeats(ordered: ULongs) -> bool:
    return bool((ordered[1:] == ordered[:-1]).any())


def _used(ids: Ints, most: int) -> tuple[Ints, Bools]:
    """Ids below a number, renumbered without gaps, and which of them are used; -1 stays."""
    there = np.zeros(most + 1, np.bool_)
    there[ids] = True
    there = there[:-1]
    lookup = np.append(np.cumsum(there, dtype=np.int32) - np.int32(1), np.int32(-1))
    return lookup[ids], there


def _nullable(values: NDArray[Any], missing: int) -> pa.Array:
    wrong = values == missing
    return pa.array(values, mask=wrong) if wrong.any() else pa.array(values)


def _write(path: Path, columns: Mapping[str, Any]) -> None:
    table = pa.table(
        {name: pa.array(values) if isinstance(values, np.ndarray) else values for name, values in columns.items()}
    )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read(path: Path) -> pa.Table:
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all().combine_chunks()


def _halves(path: Path) -> Digests:
    found = _read(path)
    return found["low"].to_numpy(), found["high"].to_numpy()


def _text(path: Path) -> pa.Array:
    found = _read(path)["text"]
    return found.chunk(0) if found.num_chunks else _NOTHING
