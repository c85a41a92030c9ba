"""queryveil attack: what does an attacker find in a release?"""

from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options, printing
from queryveil.cli.outcome import Ending, failure, finish
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader, as_released, opened
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.assess.attacks import Finding, Findings


def epilog(words: list[str]) -> str | None:
    """The end of the help: all attacks, by their question."""
    if "attack" not in words:
        return None
    from queryveil.assess.attacks import ATTACKS
    from queryveil.assess.attacks.run import QUESTIONS

    groups: dict[str, dict[str, str]] = {f"Attacks ({question})": {} for question in QUESTIONS}
    for one in ATTACKS.values():
        groups[f"Attacks ({one.question})"][one.id] = one.summary
    return printing.listed(groups)


def attack(
    reader: AnyReader,
    release: options.ReleaseFolder,
    original: options.Original,
    user_map: options.UserMap = None,
    n_known: Annotated[
        str, typer.Option("--n-known", metavar="N,...", help="How many queries of a person the attacker saw.")
    ] = "1,2,3,4,5",
    known: Annotated[
        str, typer.Option("--known", help="Which queries they saw: random, rarest, or half of all.")
    ] = "random",
    only: Annotated[
        str | None, typer.Option("--only", metavar="ATTACK,...", help="Which attacks to try.", show_default="all")
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--other", metavar="RELEASE", help="Another release to compare with, such as that of the day before."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="LOG",
            help="A log of the same kind that they have, to read hashed words.",
            show_default="half of the users' log",
        ),
    ] = None,
    taxonomy: options.TaxonomyOf = None,
    seed: options.Seed = 0,
    counted_on: options.CountedOn = None,
    lists: options.Lists = None,
    policy: options.Policy = None,
    as_json: options.Json = False,
) -> None:
    """Attack a release: can people be singled out, linked, or learnt about?

    Every attack stands beside a baseline and a control, with an interval. No user is named, and queries are shown
    masked, but the output is about the log: it is for those who may see that. With --policy it also says whether the
    release meets the policy, and exits with 6 if not.
    """
    from queryveil.assess.attacks import attack as run
    from queryveil.assess.attacks.background_knowledge import check_known
    from queryveil.assess.policy import gather, judge, load_policy
    from queryveil.release import MANIFEST, Release
    from queryveil.verification import verify

    rules = None if policy is None else load_policy(policy)
    numbers, way = options.numbers("--n-known", n_known, int, least=1), check_known(known)
    if reader.keywords["engine"] == "spark" and (other is not None or reference is not None):
        raise QueryveilError("--other and --reference compare with all of a log on one machine; leave --engine out.")
    compared = None if other is None else Release.load(other)
    attacked, log = opened(
        reader,
        release,
        original,
        user_map,
        counted_on,
        check=lambda made: options.use_taxonomy(made, taxonomy),
        lists=lists,
    )
    with progress("Attacking") as step:
        found = run(
            attacked,
            log,
            n_known=numbers,
            known=way,
            seed=seed,
            other=compared,
            reference=None if reference is None else as_released(reader, attacked)([reference]),
            taxonomy=taxonomy,
            progress=step,
            only=None if only is None else options.listed(only),
        )
        judged = None
        if rules is not None:
            step("checking")
            judged = judge(rules, gather(attacked, log, found, verify(attacked, log)))
    code: Ending | None = None if judged is None or judged.meets else "policy-not-met"
    if as_json:
        judgement = {} if judged is None else {"judgement": judged.as_dict()} | failure(code, judged.summary)
        assert attacked.folder is not None  # noqa: S101
        about = {"manifest_sha256": sha256(attacked.folder.read(MANIFEST)).hexdigest()}
        typer.echo(printing.json_text(about | found.as_dict() | judgement))
    else:
        printing.tables(
            *finding_tables(found), f"\n{found.summary}", *([] if judged is None else [f"\n{judged.summary}"])
        )
    finish(code)


def finding_tables(found: "Findings") -> list[Any]:
    """What attacks found, for the terminal."""
    from queryveil.assess.attacks.finding import estimated, shown
    from queryveil.assess.attacks.run import QUESTIONS

    parts: list[Any] = []
    for question in QUESTIONS:
        rows = [
            (
                finding.title,
                estimated(finding.estimate, finding.unit),
                shown(finding.baseline, finding.unit),
                "" if finding.control is None else shown(finding.control.value, finding.unit),
                "yes" if finding.succeeds else "no",
            )
            for finding in found.findings
            if finding.question == question
        ]
        head = ("", "found (95 %)", "baseline", "control", "succeeds")
        parts.append(
            printing.table(question.capitalize(), head, rows) if rows else f"{question.capitalize()}: not tried\n"
        )
    parts += [f"{finding.title}: {beside}" for finding in found.findings if (beside := _beside(finding))]
    parts += [f"{finding.title}, masked: {one}" for finding in found.findings for one in finding.examples]
    parts += [f"Not tried: {skipped.label} ({skipped.why})" for skipped in found.skipped]
    return parts


def _beside(finding: "Finding") -> str:
    loss = "" if finding.loss is None else f"anonymity loss {max(finding.loss, 0):.2f}"
    return "; ".join(part for part in (finding.beside, loss) if part)
