"""Forged releases of pipelines: what every step promises is checked on the final table, against the whole log."""

import json
import shutil
from collections import Counter, defaultdict
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.release.bands import bands
from queryveil.release.manifest import Manifest, counts_of
from queryveil.verification.promises import required_claims
from tests.fuzz.forging import mend, put_rows, read, table_of, tidy

PEOPLE = 12


def _log():
    """Twelve users: what all search for, what some do, what one does, and personal data; with clicks and times."""
    rows = []

    def add(user, query, url=None, country="NL"):
        rows.append((f"u{user}", query, f"2006-03-{1 + len(rows) % 28:02} 10:00:00", url, country))

    for i in range(PEOPLE):
        add(i, "red phone", "http://phone.example" if i < 8 else None)
        add(i, "red phone case" if i % 2 else "red phone cover")
        add(i, "tea" if i < 6 else "coffee", "http://tea.example" if i == 0 else None)
        add(i, f"secret of {i}")
        add(i, f"red phone {i}", country="BE" if i == 3 else "NL")
    add(0, "jo@example.org")
    names = ("user", "query", "time", "url", "country")
    return qv.read_log(pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}))


AFFINITY = qv.Affinity(k=4, theta=0.7, concept_min_users=4, min_term_users=4)
PIPELINES = {
    "records": qv.Pipeline([AFFINITY, qv.Odp(k=3)]),
    "scrubbed records": qv.Pipeline([qv.Scrub(), qv.Equality(k=4), qv.Odp(k=3)]),
    "two steps": qv.Pipeline([qv.Rules(max_terms=3), AFFINITY, qv.Columns(min_click_users=4, time="day")]),
    "rows": qv.Pipeline([AFFINITY, qv.Columns(min_row_users=4, min_click_users=4)]),
}


@pytest.fixture(scope="module")
def log():
    return _log()


@pytest.fixture(scope="module")
def made(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipelines")
    for name, pipeline in PIPELINES.items():
        release = pipeline.anonymize(log, seed=2**127)
        assert release.manifest.counts.rows, name
        release.save(folder / name)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """A release that can be changed."""

    def call(name):
        shutil.copytree(made / name, tmp_path / "r")
        return tmp_path / "r"

    return call


def broken(folder, log):
    """What the verifier refutes without the seed, and without making the release again."""
    found = qv.verify(folder, log, rebuild=False)
    return [f"{v.claim} {v.counterexample}" for v in found.verdicts if not v.holds]


def restated(folder, change, *, claims=False, log=None):
    """Change the manifest, and what follows from it: the report, and the claims if they are to fit."""
    values = json.loads((folder / "manifest.json").read_text())
    change(values)
    manifest = Manifest.model_validate_json(json.dumps(values))
    if claims:
        manifest = manifest.model_copy(update={"claims": tuple(required_claims(manifest, log))})
    mend(folder, manifest)


@pytest.mark.parametrize("name", PIPELINES)
def test_an_honest_release_holds(made, log, name):
    assert broken(made / name, log) == []


def with_query(rows, query):
    """Rows of records with one more query in each record of a group, so that the records stay the same."""
    bags = defaultdict(Counter)
    for row in rows:
        bags[row["user"]][row["query"]] += 1
    first = bags[rows[0]["user"]]
    group = [user for user, bag in bags.items() if bag == first]
    event = max(row["event"] for row in rows)
    return [*rows, *({**rows[0], "user": user, "query": query, "event": event + i} for i, user in enumerate(group, 1))]


def forged_rows(folder, log, change):
    _, table = table_of(folder)
    put_rows(folder, log, tidy(change(table.to_pylist()), table.column_names), table.schema)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("records", "the query 'secret of 5' has too few users behind it"),
        ("scrubbed records", "the query 'secret of 5' was issued by 1 users"),
    ],
)
def test_a_query_that_no_step_would_release_in_a_record(copy, log, name, said):
    folder = copy(name)
    base = log if name == "records" else qv.scrub(log, "remove")
    forged_rows(folder, base, lambda rows: with_query(rows, "secret of 5"))
    (found,) = broken(folder, log)
    assert said in found


def test_a_query_that_one_of_two_steps_would_not_release(copy, log):
    folder = copy("two steps")
    forged_rows(folder, log, lambda rows: [*rows, {**rows[0], "query": "secret of 5", "event": 10**6}])
    assert any("secret of 5" in text and "Behind every" in text for text in broken(folder, log))


def test_a_query_of_rare_rows(copy, log):
    """Each is protected, but a row of too few users was left out and is put in again."""
    folder = copy("rows")
    forged_rows(folder, log, lambda rows: [*rows, {**rows[0], "query": "coffee", "country": "BE", "event": 10**6}])
    assert any("country" in text for text in broken(folder, log))


def test_a_record_of_fewer_users(copy, log):
    folder = copy("records")
    forged_rows(folder, log, lambda rows: [row for row in rows if row["user"] != rows[0]["user"]])
    (found,) = broken(folder, log)
    assert "is that of 2 users" in found


def test_records_that_hold_more_than_their_users_issued(copy, log):
    folder = copy("records")

    def change(rows):
        users = {row["user"] for row in rows}
        more = [
            {"user": user, "query": "red phone", "event": 10**6 + 100 * user + i} for user in users for i in range(9)
        ]
        return [*rows, *more]

    forged_rows(folder, log, change)
    (found,) = broken(folder, log)
    assert "Records hold at most as many queries as users issued" in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: {**row, "time": row["time"].replace(hour=10)}, "rounded down to the day"),
        (lambda row: {**row, "url": "http://tea.example", "rank": None}, "url 'http://tea.example' has 1 users"),
    ],
    ids=["a time that is not rounded", "a click of fewer users"],
)
def test_what_columns_promise(copy, log, change, said):
    folder = copy("two steps")

    def changed(rows):
        at = next(i for i, row in enumerate(rows) if row["query"] == "tea")
        return [change(row) if i == at else row for i, row in enumerate(rows)]

    forged_rows(folder, log, changed)
    assert any(said in text for text in broken(folder, log))


def _steps(change):
    """A change of the steps of a manifest."""

    def changed(values):
        steps = values["parameters"]["steps"]
        values["parameters"]["steps"] = change(steps) or steps

    return changed


def _set(place, **given):
    return _steps(lambda steps: steps[place]["parameters"].update(given))


OTHER_STEPS = {
    "the first taken out": ("two steps", _steps(lambda steps: steps[1:])),
    "the second taken out": ("two steps", _steps(lambda steps: [steps[0], steps[2]])),
    "scrubbing taken out": ("scrubbed records", _steps(lambda steps: steps[1:])),
    "one alone": ("scrubbed records", _steps(lambda steps: steps[2:])),
    "one after scrubbing": ("scrubbed records", _steps(lambda steps: [steps[0], steps[2]])),
    "in another order": ("two steps", _steps(lambda steps: [steps[1], steps[0], steps[2]])),
    "one twice": ("records", _steps(lambda steps: [steps[0], *steps])),
    "a smaller k": ("records", _set(0, k=2)),
    "a larger k": ("records", _set(0, k=5)),
    "a smaller k of users": ("records", _set(1, k=2)),
    "a larger k of users": ("records", _set(1, k=4)),
    "another theta": ("records", _set(0, theta=0.5)),
    "links in the middle": ("records", _set(0, link="user")),
    "rows in the middle": ("two steps", _set(0, min_row_users=2)),
    "another least of a click": ("two steps", _set(2, min_click_users=2)),
    "times that are left as they are": ("two steps", _set(2, time="drop")),
    "rows that are not counted": ("rows", _set(1, min_row_users=None)),
    "scrubbed otherwise": ("scrubbed records", _set(0, how="mask")),
    "more kinds scrubbed": ("scrubbed records", _set(0, rare_term_users=5)),
    "something more about scrubbing": ("scrubbed records", _set(0, hidden="payload")),
    "another last step": ("records", _steps(lambda steps: [steps[0], {**steps[1], "method": "search"}])),
    "a pipeline in it": (
        "records",
        _steps(lambda steps: [steps[0], {"method": "pipeline", "parameters": {"steps": steps}}]),
    ),
    "no such method": ("records", _steps(lambda steps: [{**steps[0], "method": "afinity"}, steps[1]])),
    "columns alone": ("two steps", _steps(lambda steps: steps[2:])),
    "columns first": ("two steps", _steps(lambda steps: [steps[2], steps[1], steps[2]])),
    "scrub last": ("scrubbed records", _steps(lambda steps: [*steps[1:], steps[0]])),
    "scrub alone": ("scrubbed records", _steps(lambda steps: steps[:1])),
    "huge k": ("records", _set(0, k=10**30)),
    "k of another type": ("records", _set(0, k=[4])),
    "no parameters": ("records", _steps(lambda steps: [{**step, "parameters": {}} for step in steps])),
    "hidden parameters": ("records", _set(0, hidden="payload")),
    "a private method after another": (
        "records",
        _steps(lambda steps: [steps[0], {"method": "zealous", "parameters": qv.Zealous().parameters()}]),
    ),
    "items after another": (
        "records",
        _steps(lambda steps: [steps[0], {"method": "wngen", "parameters": qv.Wngen().parameters()}]),
    ),
}


AS_TRUE = {
    "scrubbing taken out": "the manifest still says that the log was scrubbed, and how",
    "one twice": "a step chooses no less from what it chose itself",
}
"""What promises the same of the same table, and why; only the seed shows which steps made it."""


@pytest.mark.parametrize("name", [name for name in OTHER_STEPS if name not in AS_TRUE])
def test_other_steps_in_the_manifest_are_refuted(copy, log, name):
    release, change = OTHER_STEPS[name]
    folder = copy(release)
    restated(folder, change)
    assert broken(folder, log)


FITTING = [
    "scrubbing taken out", "in another order", "a smaller k", "a larger k", "a larger k of users", "another theta",
    "rows that are not counted", "another least of a click", "times that are left as they are", "the first taken out",
    "one twice", "one alone", "one after scrubbing",
]  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_other_steps_are_refuted_with_the_seed_even_if_claims_fit_them(copy, log, name):
    """Where the table breaks no such claim, only making it again shows that other steps made it."""
    release, change = OTHER_STEPS[name]
    folder = copy(release)
    base = qv.scrub(log, "remove") if release == "scrubbed records" else log
    try:
        restated(folder, change, claims=True, log=base)
    except ValueError:  # no claims fit such steps
        return
    assert not qv.verify(folder, log, certificate=qv.Certificate(2**127)).holds


@pytest.mark.parametrize("name", PIPELINES)
def test_no_claim_can_be_removed_or_weakened(made, tmp_path, log, name):
    values = json.loads((made / name / "manifest.json").read_text())
    for place in range(len(values["claims"])):
        shutil.copytree(made / name, tmp_path / str(place))
        restated(tmp_path / str(place), lambda values, place=place: values["claims"].pop(place))
        (found,) = broken(tmp_path / str(place), log)
        assert "it does not claim" in found


@pytest.mark.parametrize(("name", "kind", "field"), [
    ("records", "affine-users", "drawn"),
    ("two steps", "affine-users", "drawn"),
    ("records", "record-queries", "part"),
])  # fmt: skip
def test_what_later_steps_leave_of_a_claim_is_decided_by_the_steps(copy, log, name, kind, field):
    folder = copy(name)

    def change(values):
        claim = next(claim for claim in values["claims"] if claim["kind"] == kind)
        claim[field] = not claim[field]

    restated(folder, change)
    (found,) = broken(folder, log)
    assert "it does not claim" in found


def test_a_log_that_was_not_scrubbed(copy, log):
    """The steps say so, and the rest of the manifest does not."""
    folder = copy("scrubbed records")
    restated(folder, lambda values: values.update(scrub=None))
    assert broken(folder, log)
    other = qv.Pipeline([qv.Equality(k=4), qv.Odp(k=3)]).anonymize(log, seed=1)
    other.save(folder.parent / "other")
    scrub = {"method": "scrub", "parameters": qv.Scrub().parameters()}
    restated(folder.parent / "other", _steps(lambda steps: [scrub, *steps]))
    (found,) = broken(folder.parent / "other", log)
    assert "the parameters are not those of the method 'pipeline'" in found


def test_counts_and_bands_of_the_part_in_the_place_of_the_whole(copy, log):
    folder = copy("records")
    with log.workspace() as work:
        part = log.only(AFFINITY.select(log, work).queries, "part")
    counts, parts = counts_of(part), bands(part.frequencies())
    assert counts != read(folder).input_counts
    mend(folder, read(folder).model_copy(update={"input_counts": counts}))
    assert broken(folder, log)
    shutil.rmtree(folder)
    folder = copy("records")
    assert [band.queries for band in parts] != [band.queries for band in read(folder).bands]
    mend(folder, read(folder).model_copy(update={"bands": parts}))
    assert broken(folder, log)


HOSTILE = {
    "no list": 5,
    "a text": "affinity",
    "nothing": None,
    "empty": [],
    "a table": {"method": "affinity"},
    "of texts": ["affinity", "odp"],
    "without parameters": [{"method": "affinity"}],
    "with more": [{"method": "affinity", "parameters": {}, "more": 1}] * 2,
    "a method that is a list": [{"method": ["affinity"], "parameters": {}}] * 2,
    "parameters that are a list": [{"method": "affinity", "parameters": []}] * 2,
    "a path": [{"method": "rules", "parameters": {"allow_list": "/etc/passwd"}}, {"method": "odp", "parameters": {}}],
    "a path in the last": [
        {"method": "equality", "parameters": {}},
        {"method": "odp", "parameters": {"taxonomy": "../../x"}},
    ],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_steps_are_one_sentence(copy, log, name):
    folder = copy("records")
    values = json.loads((folder / "manifest.json").read_text())
    values["parameters"]["steps"] = HOSTILE[name]
    (folder / "manifest.json").write_text(json.dumps(values))
    for look in (qv.verify, qv.evaluate, qv.attack, partial(qv.explain, query="tea")):
        with pytest.raises(qv.QueryveilError) as refused:
            look(folder, log)
        assert "/etc/passwd" not in str(refused.value)
        assert str(refused.value).count("\n") == 0


@pytest.mark.parametrize("name", [name for name in OTHER_STEPS if OTHER_STEPS[name][0] == "records"])
def test_other_verbs_answer_strange_steps_with_a_sentence_or_not_at_all(copy, log, name):
    """A manifest that can be read, but that no pipeline wrote."""
    folder = copy("records")
    restated(folder, OTHER_STEPS[name][1])
    for look in (
        partial(qv.explain, query="tea"),
        partial(qv.attack, only=["uniqueness", "history_linkage"]),
        partial(qv.evaluate, tests=10),
    ):
        with suppress(qv.QueryveilError):
            look(folder, log)


def test_a_scrubbed_log_verifies_what_its_pipeline_scrubbed(made, log):
    found = qv.verify(made / "scrubbed records", qv.scrub(log, "remove"), certificate=qv.Certificate(2**127))
    assert found.holds, found


def test_a_pipeline_of_one_step_is_none(log, tmp_path):
    qv.Pipeline([qv.Scrub(), qv.Equality(k=4)]).anonymize(log, seed=1).save(tmp_path / "r")
    assert broken(tmp_path / "r", log) == []
    restated(tmp_path / "r", _steps(lambda steps: steps[1:]))
    (found,) = broken(tmp_path / "r", log)
    assert "the parameters are not those of the method 'pipeline'" in found
