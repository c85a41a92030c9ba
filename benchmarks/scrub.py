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
        yield from _otherwise(users)
        yield from _addresses(users)
    yield from _nobody()


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


def _otherwise(users: int) -> Iterator[str]:
    yield "| planted, written otherwise | queries | told as this kind | told at all |"
    yield "|---|---|---|---|"
    for form, (kind, right, some, all_) in json.loads(run("benchmarks.scrub:otherwise", users).told).items():
        yield f"| `{kind}`: {form} | {all_:,} | {_share(right, all_)} | {_share(some, all_)} |"
    yield ""


def otherwise(users: str) -> None:
    """What is found of the planted truth if it is written in ways in which the generator never writes it.

    The rules for these ways were made knowing the ways, but not what they are used on.
    """
    import random
    import re

    import pyarrow as pa

    from queryveil.scrubbing import KINDS, mask

    draw = random.Random(1)
    table = _queries(int(users), "all")
    planted: dict[str, list[str]] = {}
    for query, kind in zip(table["query"].to_pylist(), table["sensitive"].to_pylist(), strict=True):
        planted.setdefault(kind, []).append(query)

    def digits(query: str) -> str:
        return re.sub("[^0-9]", "", query)

    def told(query: str) -> str:
        return f"{'nhs' if len(digits(query)) == 10 else 'ssn'} {digits(query)}"

    def grouped(number: str) -> str:
        parts = []
        while len(number) > 3:
            cut = draw.randint(2, min(6, len(number) - 2))
            parts.append(number[:cut])
            number = number[cut:]
        return " ".join([*parts, number])

    def spelt(query: str) -> str:
        return query.replace("@", " at ").replace(".", " dot ")

    def named(query: str, place: str) -> str:
        return f"{' '.join(query.split()[:2])} {place}"

    forms = {
        "`at` and `dot`": ("email", [spelt(query) for query in planted["email"]]),
        "blanks around `@`": ("email", [query.replace("@", " @ ") for query in planted["email"]]),
        "groups of 2 to 6 digits": ("card", [grouped(digits(query)) for query in planted["card"]]),
        "digits alone behind `ssn`, or `nhs` if ten": (
            "national_id",
            [told(query) for query in planted["national_id"]],
        ),
        "digits alone behind `passport no`": (
            "national_id",
            [f"passport no {digits(query)[:9]}" for query in planted["national_id"]],
        ),
        "two words and a postal code": ("name_place", [named(query, "62701") for query in planted["name_place"]]),
        "two words and a state's letters": ("name_place", [named(query, "tx") for query in planted["name_place"]]),
    }
    result = {}
    with timed():
        for form, (kind, queries) in forms.items():
            hits = mask(pa.array(queries)).hits
            right = int((hits >> KINDS.index(kind) & 1).sum())
            result[form] = [kind, right, int((hits > 0).sum()), len(queries)]
    print(json.dumps(result))


def _addresses(users: int) -> Iterator[str]:
    yield "| clicked addresses | distinct | seconds of one core | a second | with a hit | planted queries found |"
    yield "|---|---|---|---|---|---|"
    for which in ("those of the log", "every query as a search"):
        told = json.loads(run("benchmarks.scrub:addresses", users, which).told)
        n, seconds = told["urls"], told["seconds"]
        found = _share(told["right"], told["planted"]) if told["planted"] else "-"
        yield f"| {which} | {n:,} | {seconds:,.2f} | {n / seconds:,.0f} | {told['hits']:,} | {found} |"
    yield ""


def addresses(users: str, which: str) -> None:
    """Look at addresses: those that were clicked, or searches for the queries, as lead from one engine to another."""
    from urllib.parse import quote_plus

    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from queryveil.scrubbing import DEFAULT_KINDS, url_hits

    planted = [False]
    if which == "those of the log":
        urls = pc.unique(pq.read_table(DATA / f"scrub-{users}.parquet", columns=["url"])["url"].combine_chunks())
        urls = urls.drop_null()
    else:
        table = _queries(int(users), "all")
        searches = (f"http://search.example.com/search?hl=en&q={quote_plus(q)}" for q in table["query"].to_pylist())
        urls = pa.array(searches)
        planted = [kind in PLANTED for kind in table["sensitive"].to_pylist()]
    url_hits(urls.slice(0, 1_000), DEFAULT_KINDS)
    begin = time.process_time()
    with timed():
        hits = url_hits(urls, DEFAULT_KINDS)
    seconds = time.process_time() - begin
    right = sum(p and bool(hit) for p, hit in zip(planted, hits.tolist(), strict=False))
    told = {"urls": len(urls), "seconds": seconds, "hits": int((hits > 0).sum()), "right": right}
    print(json.dumps(told | {"planted": sum(planted)}))


def _nobody() -> Iterator[str]:
    yield "| phrases of WordNet that are no person | phrases | told | share |"
    yield "|---|---|---|---|"
    for behind, (told, all_) in json.loads(run("benchmarks.scrub:nobody").told).items():
        yield f"| {behind} | {all_:,} | {told:,} | {100 * told / all_:.2f} % |"
    yield ""


def nobody() -> None:
    """What is told of real phrases that name no person: alone, and as somebody would search for them at a place.

    Nouns of several words of WordNet, without those whose first sense is a person. No rule was made looking at them.
    """
    from importlib.resources import files

    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from queryveil.scrubbing import mask
    from queryveil.text import normal_form

    with (files("queryveil.knowledge") / "data" / "wordnet.parquet").open("rb") as file:
        table = pq.read_table(file)
    depth, name, lemma, node = (table[column][0].values for column in ("depth", "name", "lemma", "node"))
    person = name.index("person").as_py()
    deeper = depth.to_numpy()[person + 1 :] > depth[person].as_py()
    end = person + 1 + int(np.argmin(deeper))  # nodes stand in the order of the tree, children behind their parent
    places = node.to_numpy()
    other = lemma.filter(pa.array((places < person) | (places >= end))).to_pylist()
    phrases = [text.replace("_", " ") for text in other if "_" in text or " " in text]
    result = {}
    with timed():
        for behind in ("", "houston", "houston texas", "tx", "77002"):
            hits = mask(normal_form(pa.array([f"{text} {behind}" for text in phrases]))).hits
            result[f"followed by `{behind}`" if behind else "alone"] = [int((hits > 0).sum()), len(phrases)]
    print(json.dumps(result))


if __name__ == "__main__":
    for line in report([int(sys.argv[1])], 1):
        print(line, flush=True)
