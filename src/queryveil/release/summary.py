"""The plain report in every release: what was kept, what is promised, what is not."""

import re
from collections.abc import Sequence

from queryveil.claims import DifferentialPrivacy, RecordUsers, Verdict
from queryveil.log import Size
from queryveil.release.dictionary import columns_of
from queryveil.release.linkage import Linkage
from queryveil.release.manifest import Counts, Manifest, Stage
from queryveil.text.show import percent

_SPECIAL = re.compile(r"[\\`*_{}\[\]()#!|<>&~$^:@]|(?<=www)\.|^[-+=]", re.IGNORECASE)
"""What Markdown may take for markup. A dot is part of it only in an address, or behind the number of a list."""
_NUMBERED = re.compile(r"^(\d+)\.(?=\s|$)")


def escape(text: str) -> str:
    """Text from a log as inert Markdown: queries are hostile input."""
    inert = _SPECIAL.sub(r"\\\g<0>", "".join(c if c.isprintable() else " " for c in text))
    return _NUMBERED.sub(r"\1\\.", inert)


def _inert(sentence: str) -> str:
    """A sentence of queryveil's own that may name a column of the log."""
    return "".join(f"&#{ord(c)};" if c in "<>&`|[]" else c for c in sentence if c.isprintable())


def share(part: int, whole: int) -> str:
    """The share of a part in per cent; a dash if the whole is 0."""
    return percent(part / whole) if whole else "-"


def kept_rows(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """What was kept of the whole log: a row each for events, users, queries, views if it has any, and clicks.

    Nobody issued a masked query, so queries and events with a mask do not count as kept, but have rows of their own.
    """
    if manifest.series is not None and not manifest.private:
        return _series_rows(manifest)
    if manifest.kind == "items":
        return _item_rows(manifest)
    if manifest.kind == "counts":
        return _counted_rows(manifest)
    rows = []
    records = _records(manifest)
    masked = next((band for band in manifest.bands if band.masked and manifest.kind != "tokens"), None)
    with_mask = {"queries": masked.kept_queries, "events": masked.kept_events} if masked is not None else {}
    for name in ("queries", "events", "users", *_results(manifest)):
        before, after = getattr(_whole_log(manifest), name), getattr(manifest.counts, name)
        after = 0 if name == "views" and after is None else after
        label = "distinct queries" if name == "queries" else name
        after = after if after is None else after - with_mask.get(name, 0)
        if name == "queries" and manifest.kind == "tokens":
            rows.append((label, f"{before:,}", f"{after:,} as tokens", "-"))
        elif after is None:
            rows.append((label, f"{before:,}", _linked(manifest.counts), "-"))
        elif records is not None and name == "events":
            # Queries of a record are listed under each of its users, or once for all of them: neither is a share.
            rows.append((label, f"{before:,}", f"{after:,}", "-"))
        elif records is not None and records.compact and name == "users":
            rows.append((label, f"{before:,}", f"{after:,} records", "-"))
        else:
            rows.append((label, f"{before:,}", f"{after:,}", share(after, before)))
        if name in with_mask:
            rows.append((f"{label} with a mask", "-", f"{with_mask[name]:,}", "-"))
    return rows


def _series_rows(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """What is in a release of a series, which publishes nothing exact about the events that still wait."""
    counts = manifest.counts
    numbers = {"distinct queries": counts.queries, "events": counts.events, "clicks": counts.clicks}
    rows = [(name, "not published", f"{number:,}", "-") for name, number in numbers.items()]
    users = _linked(counts) if counts.users is None else f"{counts.users:,}"
    return [*rows[:2], ("users", "not published", users, "-"), rows[2]]


def _whole_log(manifest: Manifest) -> Counts | Size:
    """How much there was in the log before it was scrubbed."""
    return manifest.input_counts if manifest.scrub is None else manifest.scrub.log or manifest.input_counts


def _item_rows(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """Generalized items have no share of queries."""
    before, after = _whole_log(manifest), manifest.counts
    users = (
        (_linked(after), "-") if after.users is None else (f"{after.users:,}", share(after.users, before.users or 0))
    )
    return [
        ("distinct queries", f"{before.queries:,}", f"{after.queries:,} distinct items", "-"),
        ("events", f"{before.events:,}", f"{after.rows:,} items", "-"),
        ("users", f"{before.users:,}", *users),
        *((name, f"{getattr(before, name):,}", "0", share(0, getattr(before, name))) for name in _results(manifest)),
    ]


def _results(manifest: Manifest) -> list[str]:
    """What the log has of results: views if it says what was shown, and clicks."""
    return ["clicks"] if _whole_log(manifest).views is None else ["views", "clicks"]


def _linked(counts: Counts) -> str:
    """What to show instead of users if no user ids are released."""
    return "no user ids released" if counts.sessions is None else f"{counts.sessions:,} sessions, no user ids"


def _counted_rows(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    """What is in a table of counts. How much there was in the log would be a total, so it is not published."""
    if not manifest.private:
        counts = manifest.counts
        rows = [("rows", "-", f"{counts.rows:,}", "-")]
        if "query" in manifest.columns:
            rows.append(("distinct queries", "not published", f"{counts.queries:,}", "-"))
        return [*rows, ("events, counted in each row", "not published", f"{counts.events:,}", "-")]
    rows = [("distinct queries", "not published", f"{manifest.counts.queries:,}", "-")]
    if "count" in manifest.columns:
        rows.append(("their counts, summed up", "not published", f"{manifest.counts.events:,}", "-"))
    if "url" in manifest.columns:
        rows.append(("distinct clicks", "not published", f"{manifest.counts.clicks:,}", "-"))
    return rows


def _records(manifest: Manifest) -> RecordUsers | None:
    """The claim that users share records, if the release makes it."""
    return next((claim for claim in manifest.claims if isinstance(claim, RecordUsers)), None)


def band_rows(manifest: Manifest) -> list[tuple[str, str, str, str, str]]:
    """What was kept, by how many users issued a query; empty for generalized items and tokens."""
    if manifest.kind in ("items", "tokens"):
        return []
    return [
        (
            band.label,
            f"{band.queries:,}",
            "-" if band.masked else share(band.kept_queries, band.queries),
            f"{band.events:,}",
            "-" if band.masked or _records(manifest) is not None else share(band.kept_events, band.events),
        )
        for band in manifest.bands
    ]


def linkage_sentence(found: Linkage | None) -> str:
    """What was measured of a release whose users or sessions are linked, and what to do about it."""
    if found is None:
        return (
            "Events are linked by pseudonyms. How many of these an attacker with half of a person's history"
            " re-identifies could not be measured: there are too few people, or too few queries. Assume that all are"
            " re-identified, or choose link = none."
        )
    instead = "link = session" if found.link == "user" else "shorter sessions (session_events)"
    linked, learned, low, high, baseline = (
        percent(value) for value in (found.linked, found.learned, found.low, found.high, found.baseline)
    )
    return (
        f"The events of each {found.link} are linked by a pseudonym. An attacker who has half of a person's history"
        f" links {linked} of the {found.link}s to the right person, and so learns {learned} of a person's released"
        f" queries that they did not know (95 % interval {low} to {high}; baseline: {baseline}; measured on"
        f" {found.users:,} people among {found.candidates:,}). If that is too much, choose {instead} or link = none."
    )


def _attacker(manifest: Manifest) -> list[str]:
    """What was measured, if events are linked."""
    if manifest.steps[-1].parameters.get("link", "none") == "none":
        return []
    return ["## What an attacker finds", _inert(linkage_sentence(manifest.linkage))]


def markdown(manifest: Manifest, verdicts: Sequence[Verdict]) -> str:
    """The report of a release as Markdown."""
    parts = [
        f"# {escape(title_of(manifest))}",
        *_about(manifest),
        f"Made by {manifest.software} with {_methods(manifest)}{_made_from(manifest)}.",
        *_series(manifest),
        "## What it promises",
        "\n".join(map(_promise, verdicts)) or "- Nothing.",
        "Each promise was checked against the released file and the original log before the release was written. "
        "Anyone who has both can check again with `queryveil verify`.",
        "## What it does not promise",
        "\n".join(f"- {limit}" for limit in manifest.limits),
        *_attacker(manifest),
        *_languages(manifest),
        *_scrub(manifest),
        "## What was kept",
        _table(("", "in the log", "in the release", "share"), kept_rows(manifest)),
        *_bands(manifest),
        *_accounting(manifest),
        "## Parameters",
        *(part for step in manifest.steps for part in _parameters(step, manifest)),
        "## Columns",
        "`schema.json` says the same for programs.",
        _table(("column", "type", "meaning", "what was done to it"), _columns(manifest)),
    ]
    return "\n\n".join(parts) + "\n"


_HELD = {
    "events": "events",
    "sessions": "sessions",
    "records": "records",
    "items": "generalized items",
    "tokens": "hashed queries",
    "counts": "counts",
}


def title_of(manifest: Manifest) -> str:
    """What a release is called: its title, or what it holds and how it was made."""
    if manifest.about is not None and manifest.about.title is not None:
        return manifest.about.title
    return f"Release of {_HELD[manifest.kind]} by {', '.join(step.method for step in manifest.steps)}"


def _about(manifest: Manifest) -> list[str]:
    """What the publisher says."""
    rows = [] if manifest.about is None else manifest.about.rows
    opening = "What its publisher says about it, which no check confirms:"
    return [opening, _table(("", ""), [(name, escape(text)) for name, text in rows])] if rows else []


def _series(manifest: Manifest) -> list[str]:
    """Where in its series the release is."""
    series = manifest.series
    if series is None:
        return []
    after = "" if series.previous is None else f", after the release whose manifest has the SHA-256 `{series.previous}`"
    spent = ""
    if series.spent is not None:
        spent = (
            f" All releases up to this one are together ({series.spent.epsilon:.6g}, {series.spent.delta:g})-"
            "differentially private for every user's whole log."
        )
    return [
        f"This is release {series.number} of a series{after}. No event is in two releases of the series. The log that"
        " it was made from is all events that waited for it, so numbers of users are about these. Anyone who has all"
        f" logs can check the series with `queryveil series verify`.{spent}"
    ]


def _columns(manifest: Manifest) -> list[tuple[str, str, str, str]]:
    return [
        (escape(column.name), column.type, _inert(column.meaning), _inert(" ".join(column.treatment)))
        for column in columns_of(manifest)
    ]


def _methods(manifest: Manifest) -> str:
    names = [f"`{escape(step.method)}`" for step in manifest.steps]
    return f"the method {names[0]}" if len(names) == 1 else f"the steps {', '.join(names)}"


def _parameters(step: Stage, manifest: Manifest) -> list[str]:
    """The parameters of a method, under its name if it is one of several."""
    rows = [(f"`{name}`", escape(_plain(value))) for name, value in step.parameters.items()]
    head = [] if len(manifest.steps) == 1 else [f"### {escape(step.method)}"]
    return [*head, _table(("parameter", "value"), rows)]


def _promise(verdict: Verdict) -> str:
    """The headline of a promise and whether it holds, and below it the exact statement if that says more."""
    headline, *exact = map(_inert, verdict.lines)
    return "\n  ".join([f"- **{headline}** *{'Holds.' if verdict.holds else 'Refuted.'}*", *exact])


def _accounting(manifest: Manifest) -> list[str]:
    """How a privacy budget is spent: what is counted, and the noise on it."""
    claim = next((claim for claim in manifest.claims if isinstance(claim, DifferentialPrivacy)), None)
    if claim is None:
        return []
    head = ("counted", "noise", "things per user", "scale", "sums below it are dropped", "threshold")
    rows = [
        (
            step.of,
            f"discrete {step.noise.capitalize()}",
            f"{step.d:,}" if step.weight is None else f"{step.d:,}, of weight {step.weight:,} together",
            f"{step.scale:,.6g}",
            f"{step.pre_threshold:,}",
            "-" if step.threshold is None else f"{step.threshold:,}",
        )
        for step in claim.steps
    ]
    return [
        "## Accounting",
        "Noise comes from a secure source and is different in each run. All steps together cost the stated epsilon and"
        " delta.",
        _table(head, rows),
    ]


def _made_from(manifest: Manifest) -> str:
    """Which log the release was made from, for people who have its certificate."""
    if manifest.input_fingerprint is None:
        return ""
    other, elsewhere = manifest.counted_on, ""
    if other is not None:
        elsewhere = (
            f". Users of fragments were counted on another log, of {other.counts.users or 0:,} users and"
            f" {other.counts.events:,} events, with the keyed fingerprint `{escape(other.fingerprint)}`"
        )
    return f" from the log with the keyed fingerprint `{manifest.input_fingerprint}`{elsewhere}"


SCRUB_HEAD = ("distinct queries", "events", "distinct addresses", "clicks")


def _languages(manifest: Manifest) -> list[str]:
    """The languages of the log, and what words were cut with."""
    found = manifest.language
    if found is None:
        return []
    cut = "".join(f" {escape(label)} was cut with: {escape(by)}." for label, by in found.dictionaries.items())
    named = ", ".join(map(escape, found.ids))
    return ["## Language", f"Words and stop words are those of: {named}.{cut} Other versions may give other words."]


def scrub_rows(manifest: Manifest) -> list[tuple[str, ...]]:
    """What scrubbing found: one row per kind, one for all, and one for masked queries that were left out."""
    scrub = manifest.scrub
    if scrub is None:
        return []
    if manifest.private or manifest.series is not None:
        return [("any of them", *["not published"] * len(SCRUB_HEAD))]
    found = [*scrub.hits.items(), ("any of them", scrub.total)]
    rows = [(kind, *(f"{n:,}" for n in (hits.queries, hits.events, hits.urls, hits.clicks))) for kind, hits in found]
    gone = scrub.left_out
    return rows + ([("no word left", f"{gone.queries:,}", f"{gone.events:,}", "-", "-")] if scrub.how == "mask" else [])


def _scrub(manifest: Manifest) -> list[str]:
    scrub = manifest.scrub
    if scrub is None:
        return []
    looked = [escape(kind) for kind in scrub.kinds]
    looked += [f"words of fewer than {scrub.rare_term_users} users"] if scrub.rare_term_users is not None else []
    done = (
        "It left out every event whose query has any of these."
        if scrub.how == "remove"
        else "It replaced each hit by a mask, left out the clicks of such events, and left out events whose query had "
        "no word left."
    )
    return [
        "## What was scrubbed",
        f"Before the method was run, queryveil searched the queries for: {', '.join(looked)}. {done} Clicks on "
        "addresses with such data were left out as well; their events stay. What was kept is compared with the whole "
        "log. Promises, and numbers of users, are about the scrubbed log. **Extra columns were not searched.** "
        "Scrubbing finds forms and listed names, not meaning: it reduces the personal data that is left, and promises "
        "nothing.",
        _table(("found", *SCRUB_HEAD), [(escape(kind), *rest) for kind, *rest in scrub_rows(manifest)]),
    ]


def _bands(manifest: Manifest) -> list[str]:
    rows = band_rows(manifest)
    if manifest.series is not None and not manifest.private:
        return ["Nothing exact is published about the events that still wait: releases of a series share them."]
    if manifest.private:
        return ["Nothing exact about the log is published: it would break the promise."]
    if manifest.kind == "counts":
        return ["Rows of too few users are not published. No row stands for a person."]
    if not rows and manifest.kind == "tokens":
        return ["Words are not published, but tokens instead of them, which is **not anonymous**."]
    if not rows:
        return ["Queries are not published, but items instead of the nouns in them."]
    head = ("queries of", "distinct queries", "kept", "events", "kept")
    return ["Queries by number of users:", _table(head, rows)]


def _plain(value: object) -> str:
    if value is None or value is False:
        return "off"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "on" if value is True else str(value)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
