"""The report of one release: what it is, what it keeps, and what an attacker finds in it."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from queryveil import __version__
from queryveil.assess.attacks import Findings, attack
from queryveil.assess.evaluation import Evaluation, evaluate
from queryveil.assess.measures import retention
from queryveil.assess.policy import Judgement, Policy, gather, judge, load_policy
from queryveil.errors import Progress, QueryveilError, old_names
from queryveil.files.folders import LocalFolder, check_file, write_whole
from queryveil.knowledge import known_as, open_taxonomy
from queryveil.log import LocalLog, QueryLog, check_is_log
from queryveil.methods import STEPS, Scrub, parameters_of
from queryveil.release import Release, check_log, loaded_release
from queryveil.release.bands import Band
from queryveil.release.dictionary import columns_of
from queryveil.release.manifest import Manifest, Stage
from queryveil.release.summary import SCRUB_HEAD, kept_rows, scrub_rows
from queryveil.reports import charts, words
from queryveil.reports.examples import COMMON, Example, examples
from queryveil.reports.page import check_packages, render
from queryveil.verification import verify
from queryveil.verification.verifier import Verification

ENDINGS = (".html", ".htm")


@dataclass(frozen=True)
class Report:
    """What a report shows, as values."""

    verification: Verification
    evaluation: Evaluation
    findings: Findings
    judgement: Judgement


@old_names(knowledge="taxonomy", tell="progress", read=None)
def report(
    release: str | Path | Release,
    log: QueryLog,
    path: str | Path,
    *,
    taxonomy: str | None = None,
    seed: int = 0,
    policy: Policy | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Verify, evaluate and attack a release, and write what was found as one HTML file that needs no network.

    The report describes the log. It is for people who may see the log, and is never written into the release.

    Args:
        release: The folder of the release, or a release. Without a user map (`queryveil.release.with_user_map`), many
            attacks and measures cannot run on a release that was loaded.
        log: Its log. A large one on Spark is counted there, and the rest is of a sample of users.
        path: The file to write, ending with .html.
        taxonomy: The place of the web directory that the release was made with, if any; users' interests are then
            looked up there and not in WordNet.
        seed: Random seed of measures and attacks.
        policy: What the release must meet; by default the policy that comes with queryveil.
        overwrite: Whether a file at this place may be replaced.
        progress: Called with what is being done.

    Raises:
        QueryveilError: If the file cannot or must not be written, or the release is not of this log.
    """
    check_packages()
    made = loaded_release(release)
    place = check_place(path, made, overwrite=overwrite)
    check_is_log(log, "report")
    step = progress or (lambda what: None)
    check_log(made, log)
    if not isinstance(log, LocalLog):
        from queryveil.assess.sampling import at_hand

        made, log = at_hand(made, log)
    if taxonomy is not None:
        open_taxonomy(taxonomy)
        for each in made.manifest.steps:
            known_as(str(each.parameters.get("taxonomy")), taxonomy)
    step("checking")
    checked = verify(made, log)
    measured = evaluate(made, log, taxonomy=taxonomy or "wordnet", seed=seed, progress=step)
    findings = attack(made, log, seed=seed, taxonomy=taxonomy, progress=step)
    rules = policy or load_policy()
    found = Report(checked, measured, findings, judge(rules, gather(made, log, findings, checked)))
    step("writing")
    bands = retention(made, log).bands
    page = release_page(
        found,
        made.manifest,
        bands,
        examples(made, log, bands),
        seed=seed,
        taxonomy=taxonomy is not None,
        known_users=made.pseudonyms is not None,
        own_policy=rules != Policy(),
    )
    write_whole(place, page.encode(), overwrite=overwrite, private=True)
    return found


def check_place(path: str | Path, release: Release, *, overwrite: bool) -> Path:
    """Refuse a place where the report cannot or must not be written; above all in the release, which is published."""
    place = check_file(path, ENDINGS, overwrite)
    folder = release.folder
    if isinstance(folder, LocalFolder) and place.resolve().is_relative_to(folder.path.resolve()):
        raise QueryveilError(
            f"{place} is in the folder of the release, where a report about the log must not be; name another place."
        )
    return place


def release_page(
    found: Report,
    manifest: Manifest,
    bands: Sequence[Band],
    shown: list[Example],
    *,
    seed: int,
    taxonomy: bool = False,
    known_users: bool = True,
    own_policy: bool = False,
) -> str:
    """The report of a release as HTML.

    Args:
        found: What was found.
        manifest: The manifest of the release.
        bands: Retention of the log, by how many users issued a query.
        shown: Masked examples.
        seed: The random seed of measures and attacks.
        taxonomy: Whether users' interests were looked up in a web directory.
        known_users: Whether it was known who is who in the release.
        own_policy: Whether it was judged by another policy than the one that comes with queryveil.
    """
    with_queries = any(band.kept_queries for band in bands)
    figures = [*([charts.kept(bands)] if with_queries else []), charts.utility(found.evaluation.measured)]
    figures.append(charts.attacks(found.findings))
    bound = found.findings.bound
    first, *answers, last = (line for line in found.findings.summary.split("\n") if line != bound)
    return render(
        "release.html",
        figures,
        title=words.title(manifest),
        lead=words.lead(manifest),
        judged=found.judgement,
        judged_as={True: "meets", False: "misses", None: "open"}[found.judgement.meets],
        policy_rows=[
            (
                one.label,
                one.limit_text,
                one.found_text,
                {True: "yes", False: "no", None: "cannot be said"}[one.met],
                one.why,
            )
            for one in found.judgement.criteria
        ],
        untried=list(dict.fromkeys(one.label for one in found.findings.skipped)),
        tiles=_tiles(found, manifest, with_queries),
        verdicts=found.verification.verdicts,
        holds=found.verification.holds,
        manifest=manifest,
        fingerprint=found.evaluation.fingerprint,
        manifest_json=json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False),
        column_rows=[
            (column.name, column.type, column.meaning, " ".join(column.treatment)) for column in columns_of(manifest)
        ],
        kept_rows=kept_rows(manifest),
        scrub_head=("found", *SCRUB_HEAD),
        scrub_rows=scrub_rows(manifest),
        private=manifest.private,
        hashed=manifest.kind == "tokens",
        bound=bound,
        summary=(first, [_answer(answer) for answer in answers], last),
        skipped=found.findings.skipped,
        examples=shown,
        common=COMMON,
        glossary=sorted(words.GLOSSARY.items(), key=lambda item: item[0].lower()),
        commands=commands(manifest, seed, taxonomy=taxonomy, known_users=known_users, own_policy=own_policy),
        version=__version__,
        seed=seed,
    )


def _answer(line: str) -> tuple[str, str, list[str]]:
    """A line of the overall finding, taken apart: the question, the answer, and the numbers behind it."""
    question, rest = line.split(": ", 1)
    answer, *numbers = rest.removesuffix(".").split(". ")
    return question, answer[0].upper() + answer[1:], numbers


def _tiles(found: Report, manifest: Manifest, with_queries: bool) -> list[tuple[str, str, str, str]]:
    """The numbers to begin with: a name, the number, what is behind it, and a tone."""
    verdicts = found.verification.verdicts
    good = sum(verdict.holds for verdict in verdicts)
    won = sum(finding.succeeds for finding in found.findings.findings)
    tried = len(found.findings.findings)
    measured = {one.measure: one.value for one in found.evaluation.measured}
    tiles = [
        (
            "Checks that hold",
            f"{good} of {len(verdicts)}",
            "by the verifier",
            "good" if good == len(verdicts) else "bad",
        )
    ]
    if with_queries:
        for name, label in (("queries_kept", "Distinct queries kept"), ("events_kept", "Events kept")):
            value = measured.get(name)
            if value is not None:
                tiles.append((label, charts.number(value, True), "of those in the log", ""))
    else:
        tiles.append(("Rows released", f"{manifest.counts.rows:,}", f"{manifest.counts.queries:,} distinct", ""))
    tiles.append(("Attacks that succeed", f"{won} of {tried}", "above baseline and control", "bad" if won else ""))
    return tiles


def commands(
    manifest: Manifest, seed: int, *, taxonomy: bool, known_users: bool, own_policy: bool = False
) -> list[str]:
    """The commands that make and check the same again, with names in the place of files."""
    linked = {"user", "session"} & set(manifest.columns)
    known = " --user-map map.csv" if known_users and linked else ""
    place = " --taxonomy TAXONOMY" if taxonomy else ""
    longer = "" if manifest.counted_on is None else " --counted-on LONGER"
    # Other commands find the language in the manifest.
    spoken = "" if manifest.language is None else f" --language {','.join(manifest.language.ids)}"
    listed = f" --list {','.join(map(shlex.quote, sorted(manifest.list_names)))}" if manifest.list_names else ""
    again = f"release --original LOG{known}{place}{{}} --seed {seed}"
    first, *others = manifest.steps
    made = ["queryveil anonymize LOG", f"--method {shlex.quote(first.method)}", *_options(first)]
    made += [word for step in others for word in (f"--then {shlex.quote(step.method)}", *_options(step))]
    if manifest.scrub is not None and first.method != Scrub.name:
        made.append(f"--scrub {manifest.scrub.how}")
        made += [f"--scrub-kinds {','.join(manifest.scrub.kinds)}"] if manifest.scrub.kinds else []
        rare = manifest.scrub.rare_term_users
        made += [f"--scrub-rare-users {rare}"] if rare is not None else []
        countries = manifest.scrub.countries
        made += [f"--scrub-countries {','.join(countries)}"] if countries is not None else []
    if not manifest.table.endswith(".parquet") and manifest.table:
        made.append(f"--output-format {'aol' if manifest.table.endswith('.tsv') else 'csv'}")
    return [
        f"queryveil --version  # {__version__}, with the extras {', '.join(_extras(manifest))}",
        f"{' '.join(made)}{longer}{spoken} -o release{known}",
        f"queryveil verify release --original LOG{place}{longer}{listed}",
        f"queryveil evaluate {again.format('')}",
        f"queryveil attack {again.format(longer + listed)}",
        f"queryveil report {again.format(longer + listed)}{' --policy POLICY' if own_policy else ''} -o report.html",
    ]


def _extras(manifest: Manifest) -> list[str]:
    """The extras that these commands need."""
    needed = (extra for step in manifest.steps if step.method in STEPS for extra in STEPS[step.method].extras)
    return sorted({"attack", "report", *needed})


def _options(step: Stage) -> list[str]:
    """The parameters that are not at their defaults, as the command line takes them."""
    found = []
    for parameter in parameters_of(STEPS[step.method]) if step.method in STEPS else ():
        value = step.parameters.get(parameter.name)
        flag = f"-{parameter.name}" if len(parameter.name) == 1 else f"--{parameter.name.replace('_', '-')}"
        usual = list(parameter.default) if parameter.many else parameter.default
        if value is None or (value == usual and parameter.name != "k"):
            continue
        if isinstance(value, bool):
            found.append(flag if value else flag.replace("--", "--no-", 1))
        elif parameter.many:
            found += [f"{flag} {shlex.quote(str(one))}" for one in value]
        else:
            # A path on this machine is not published; the name says what to give instead.
            place = "/" in str(value) or (parameter.name == "taxonomy" and value != "wordnet")
            text = parameter.name.upper() if place else shlex.quote(str(value))
            found.append(f"{flag} {text}")
    return found
