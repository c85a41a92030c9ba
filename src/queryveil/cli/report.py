"""queryveil report: everything about a release on one page."""

from dataclasses import asdict
from typing import Annotated

import typer

from queryveil.cli import options, printing
from queryveil.cli.outcome import Ending, failure, finish
from queryveil.cli.progress import progress
from queryveil.cli.reading import AnyReader, opened


def report(
    reader: AnyReader,
    release: options.ReleaseFolder,
    original: options.Original,
    output: Annotated[str, typer.Option("--output", "-o", help="The file to write, ending with .html.")],
    user_map: options.UserMap = None,
    taxonomy: options.TaxonomyOf = None,
    counted_on: options.CountedOn = None,
    lists: options.Lists = None,
    seed: options.Seed = 0,
    policy: options.Policy = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier report.")] = False,
    as_json: options.Json = False,
) -> None:
    """Verify, evaluate and attack a release, and write what was found as one HTML file that needs no network.

    The report opens with whether the release meets the policy. It describes the log, so it is for those who may see
    that, and is never written into the release. Exits with 1 if the release is refuted, and with 6 if --policy is given
    and not met; the report is written all the same, and says so.
    """
    from queryveil.assess.policy import load_policy
    from queryveil.reports import check_packages, check_place
    from queryveil.reports import report as write

    check_packages()
    rules = load_policy(policy)
    made, log = opened(
        reader,
        release,
        original,
        user_map,
        counted_on,
        check=lambda made: check_place(output, made, overwrite=overwrite),
        lists=lists,
    )
    with progress("Reporting") as step:
        found = write(
            made,
            log,
            output,
            taxonomy=taxonomy,
            seed=seed,
            policy=rules,
            overwrite=overwrite,
            progress=step,
        )
    verdicts, tried = found.verification.verdicts, found.findings.findings
    code: Ending | None = found.verification.code
    if code is None and policy is not None and found.judgement.meets is not True:
        code = "policy-not-met"
    if as_json:
        result = {
            "report": output,
            "verdicts": [asdict(verdict) for verdict in verdicts],
            "findings": found.findings.as_dict(),
            "policy": found.judgement.as_dict(),
        }
        typer.echo(printing.json_text(result | failure(code, found.judgement.summary)))
        finish(code)
    typer.echo(found.judgement.summary)
    typer.echo(
        f"{sum(verdict.holds for verdict in verdicts)} of {len(verdicts)} checks hold;"
        f" {sum(finding.succeeds for finding in tried)} of {len(tried)} attacks succeed."
    )
    typer.echo(f"Written to {printing.printable(output)}; it describes the log, and is for those who may see that.")
    finish(code)
