"""Scrubbing against Presidio: speed on distinct queries, and what is found of the planted truth.

Presidio needs an NLP engine, and there is no trained English model of spaCy's on the package registry: it runs here
with a blank one, that is with its pattern recognizers alone, which is also its fastest. So it has no way to find names
and places; what it finds as a driver's licence, a bank account, a date or a web address is not counted against it. Both
work in one thread; time is that of the processor, so that other work on the machine does not count.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.harness import DATA, run, timed

SAMPLE = 5_000
"""About so many distinct queries for Presidio's speed."""

PLANTED = ("email", "card", "phone", "national_id", "address", "name_place")
PRESIDIO = {
    "EMAIL_ADDRESS": "email", "CREDIT_CARD": "card", "PHONE_NUMBER": "phone", "US_SSN": "national_id",
    "US_ITIN": "national_id", "UK_NHS": "national_id", "UK_NINO": "national_id", "IP_ADDRESS": "ip",
    "IBAN_CODE": "iban",
}  # fmt: skip


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The tables of README.md."""
    for users in sizes:
        _truth(users)
        yield f"{users:,} users\n"
        yield "| distinct queries | tool | queries | seconds of one core | queries a second |"
        yield "|---|---|---|---|---|"
        for which in ("without a digit or @", "all"):
            for tool in ("queryveil", "presidio"):
                cost = run(f"benchmarks.scrub:{tool}", users, which, times=times if tool == "queryveil" else 1)
                told = json.loads(cost.told)
                n, seconds = told["queries"], told["seconds"]
                yield f"| {which} | {tool} | {n:,} | {seconds:,.2f} | {n / seconds:,.0f} |"
        yield ""
        yield from _quality(users)


def _truth(users: int) -> None:
    from queryveil import generate

    if not (DATA / f"scrub-truth-{users}").exists():
        DATA.mkdir(exist_ok=True)
        log = DATA / f"scrub-{users}.parquet"
        generate(log, users=users, seed=1, truth=DATA / f"scrub-truth-{users}", overwrite=log.exists())


def _queries(users: int, which: str):  # type: ignore[no-untyped-def]
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(DATA / f"scrub-truth-{users}" / "queries.parquet")
    signs = pc.match_substring_regex(table["query"], "[0-9@]")
    return table if which == "all" else table.filter(pc.invert(signs))


def queryveil(users: str, which: str) -> None:
    """Mask all queries; the lists are read and the loops compiled before."""
    from queryveil.scrubbing import mask

    queries = _queries(int(users), which)["query"].combine_chunks()
    mask(queries.slice(0, 5_000))
    begin = time.process_time()
    with timed():
        mask(queries)
    print(json.dumps({"queries": len(queries), "seconds": time.process_time() - begin}))


def presidio(users: str, which: str) -> None:
    """Analyze a sample of the queries."""
    queries = _queries(int(users), which)["query"]
    sample = queries.take(list(range(0, len(queries), max(1, len(queries) // SAMPLE)))).to_pylist()
    engine = _presidio()
    engine.analyze("warm up jane@example.com 212-555-0123 4111111111111111", language="en")
    begin = time.process_time()
    with timed():
        for query in sample:
            engine.analyze(query, language="en")
    print(json.dumps({"queries": len(sample), "seconds": time.process_time() - begin}))


def _presidio():  # type: ignore[no-untyped-def]
    import logging

    import spacy
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    logging.disable(logging.WARNING)

    class Blank(SpacyNlpEngine):
        def __init__(self) -> None:
            super().__init__()
            self.nlp = {"en": spacy.blank("en")}

    registry = RecognizerRegistry(supported_languages=["en"])
    registry.load_predefined_recognizers(languages=["en"])
    registry.remove_recognizer("SpacyRecognizer")
    return AnalyzerEngine(nlp_engine=Blank(), registry=registry, supported_languages=["en"])


def _quality(users: int) -> Iterator[str]:
    found = {tool: json.loads(run(f"benchmarks.scrub:{tool}_found", users).told) for tool in ("queryveil", "presidio")}
    yield "| planted | queries | queryveil precision | recall | Presidio precision | recall |"
    yield "|---|---|---|---|---|---|"
    for kind in PLANTED:
        ours, theirs = found["queryveil"][kind], found["presidio"].get(kind)
        cells = [f"{_share(*ours[:2])} | {_share(ours[0], ours[2])}"]
        cells.append(f"{_share(*theirs[:2])} | {_share(theirs[0], theirs[2])}" if theirs else "- | -")
        yield f"| `{kind}` | {ours[2]:,} | {' | '.join(cells)} |"
    yield ""
    for tool, name in (("queryveil", "queryveil"), ("presidio", "Presidio")):
        right, told, all_ = found[tool]["any"]
        yield (
            f"Any kind told of a query where something of any kind is planted, {name}: precision"
            f" {_share(right, told)}, recall {_share(right, all_)}."
        )
    yield ""


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def queryveil_found(users: str) -> None:
    """What is told of every query."""
    from queryveil.scrubbing import KINDS, mask

    table = _queries(int(users), "all")
    with timed():
        hits = mask(table["query"].combine_chunks()).hits.tolist()
    told = [{kind for bit, kind in enumerate(KINDS) if hit >> bit & 1} for hit in hits]
    print(json.dumps(_compared(table["sensitive"].to_pylist(), told)))


def presidio_found(users: str) -> None:
    """The same by Presidio, on all queries with a digit or @ and on a sample of the others: patterns need one."""
    import re

    table = _queries(int(users), "all")
    engine = _presidio()
    queries = table["query"].to_pylist()
    step = max(1, len(queries) // SAMPLE)
    looked = [i for i, query in enumerate(queries) if i % step == 0 or re.search("[0-9@]", query)]
    told: list[set[str]] = [set() for _ in queries]
    with timed():
        for i in looked:
            results = engine.analyze(queries[i], language="en")
            told[i] = {PRESIDIO[r.entity_type] for r in results if r.entity_type in PRESIDIO}
    print(json.dumps(_compared(table["sensitive"].to_pylist(), told)))


def _compared(planted: list[str | None], told: list[set[str]]) -> dict[str, list[int]]:
    """For each kind: rightly told, told, planted. A name of one's own without a place is asked of nobody."""
    result = {}
    for kind in PLANTED:
        right = sum(p == kind and kind in t for p, t in zip(planted, told, strict=True))
        result[kind] = [right, sum(kind in t for t in told), sum(p == kind for p in planted)]
    some = [p in PLANTED for p in planted]
    right = sum(p and bool(t) for p, t in zip(some, told, strict=True))
    result["any"] = [right, sum(map(bool, told)), sum(some)]
    return result


if __name__ == "__main__":
    for line in report([int(sys.argv[1])], 1):
        print(line, flush=True)
