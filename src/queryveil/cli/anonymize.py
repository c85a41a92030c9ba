"""queryveil anonymize: from a log to a release.

The options of a method come from its own declaration, so they depend on the method named on the command line.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import cluster, options, printing
from queryveil.cli.method_options import Chosen, chosen_by, configured, off_option
from queryveil.cli.outcome import failure, finish
from queryveil.cli.progress import note, progress, warn
from queryveil.cli.reading import AnyReader, as_in_recipe, keywords, read_counted, reads_log, with_options
from queryveil.errors import QueryveilError

if TYPE_CHECKING:
    from queryveil.assess.policy import Judgement, Policy
    from queryveil.log import QueryLog
    from queryveil.methods import Method
    from queryveil.release import Release

_UNGUESSED = 64
"""Bits of a seed that cannot be found by trying."""


def command(words: list[str], *, lenient: bool) -> Callable[..., None]:
    """The verb, with the options of the method that the command line names.

    Args:
        words: The command line.
        lenient: Whether to accept a missing or unknown method, as for help and completion.
    """
    chosen = chosen_by(words, lenient) if "anonymize" in words else None
    extra = chosen.options if chosen is not None else []

    def run(**given: Any) -> None:
        assert chosen is not None  # noqa: S101  # only help and completion come without one
        anonymize(chosen=chosen, parameters={option.name: given.pop(option.name) for option in extra}, **given)

    own = [option for option in keywords(anonymize) if option.name not in ("chosen", "parameters")]
    return reads_log(with_options(run, [*own, *extra], anonymize.__doc__), spark=True)


def epilog(words: list[str]) -> str | None:
    """The end of the help: all methods and what they do, or how to switch off parameters of the one that is named."""
    if "anonymize" not in words:
        return None
    from queryveil.methods import STEPS, Pipeline, parameters_of
    from queryveil.methods.recipe import shipped

    chosen = chosen_by(words, True)
    if chosen is not None:
        known = [] if chosen.method is Pipeline else parameters_of(chosen.method)
        off = [off_option(parameter.name) for parameter in known if parameter.optional]
        listed_off = fill(f"To switch off what a recipe sets: {', '.join(off)}.", 76, break_on_hyphens=False)
        return listed_off if off else None
    listed = {
        "Methods": {name: method.summary for name, method in STEPS.items() if method.alone},
        "Steps of a pipeline": {name: method.summary for name, method in STEPS.items() if not method.alone},
    }
    recipes = fill(f"Recipes: {', '.join(shipped())}.", 76, break_on_hyphens=False)
    return (
        f"{printing.listed(listed)}\n\n{recipes}\n\n"
        "For the parameters of a method: queryveil anonymize --method NAME --help"
    )


def anonymize(
    reader: AnyReader,
    chosen: Chosen,
    parameters: dict[str, Any],
    log: options.Logs,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder to write the release to.")],
    method: Annotated[str | None, typer.Option(help="How to anonymize; see below.")] = None,
    then: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD", help="A further step, with its own options behind it; may be given again."),
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="A recipe file, or the name of a built-in recipe.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed. Keep it secret.", show_default="128 random bits")
    ] = None,
    output_format: Annotated[str, typer.Option(help="Format of the table: parquet, aol (TSV) or csv.")] = "parquet",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release.")] = False,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Write the release even if it has no query.")
    ] = False,
    user_map: Annotated[
        str | None,
        typer.Option(help="Also write the map from original users to pseudonyms to this file. Keep it secret."),
    ] = None,
    certificate: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also write the seed and data for quick checks, for 'verify --certificate'; ends with"
            " .certificate. As confidential as the log. Without it the seed is lost.",
        ),
    ] = None,
    scrub: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="First remove events whose query has personal data, or mask the data: remove or mask."
            " Clicks on addresses with such data are left out.",
            show_default="off",
            rich_help_panel="Scrubbing",
        ),
    ] = None,
    scrub_kinds: Annotated[
        str | None,
        typer.Option(
            metavar="KIND,...",
            help="Kinds of personal data: url, email, card, iban, national_id, phone, ip, address, name_place, name.",
            show_default="all but name",
            rich_help_panel="Scrubbing",
        ),
    ] = None,
    scrub_countries: Annotated[
        str | None,
        typer.Option(
            metavar="CODE,...",
            help="Countries whose phone numbers, national ids and bank accounts are scrubbed, such as DE,AT.",
            show_default="those of the language",
            rich_help_panel="Scrubbing",
        ),
    ] = None,
    scrub_rare_users: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Also scrub words that fewer than N users typed.",
            show_default="off",
            rich_help_panel="Scrubbing",
        ),
    ] = None,
    title: options.Title = None,
    source: options.Source = None,
    contact: options.Contact = None,
    published: options.Published = None,
    covers: options.Covers = None,
    counted_on: options.CountedOn = None,
    policy: options.Policy = None,
    as_json: options.Json = False,
) -> None:
    """Anonymize a log: write a folder with the released table, its manifest and a report.

    Nothing is written unless every claim of the release passes the verifier.
    """
    from queryveil.assess.policy import load_policy
    from queryveil.claims.certificates import SUFFIX
    from queryveil.files.folders import check_file, is_address, local_file
    from queryveil.log import refusal
    from queryveil.methods.recipe import load_recipe
    from queryveil.release import MANIFEST, check_target
    from queryveil.sources import folder_at

    base = load_recipe(recipe) if recipe is not None else None
    configuration = configured(chosen, base, parameters)
    if seed is None and base is not None:
        seed = base.seed
    recipe_says = None if base is None else base.about
    about = options.about(recipe_says, title=title, source=source, contact=contact, published=published, covers=covers)
    spark = reader.keywords["engine"] == "spark"
    if spark and output_format != "parquet":
        raise QueryveilError("Spark writes a release as Parquet; leave --output-format out.")
    if output_format == "aol" and not configuration.last.fits_aol:
        raise QueryveilError(
            f"The aol format has no place for the table of {configuration.last.name}; use parquet or csv."
        )
    # Whether an earlier release may be replaced is decided once, before the work begins.
    place = None if spark and is_address(output) else check_target(folder_at(output), output_format, overwrite)
    map_file = local_file(user_map) if user_map is not None else None
    if map_file is not None:
        if getattr(configuration.last, "link", "user") == "none":
            raise QueryveilError(
                "A release with --link none has no pseudonyms, so there is no user map; leave --user-map out, or choose"
                " --link session or --link user."
            )
        _check_private(map_file, output, "user map")
    certificate_file = local_file(certificate) if certificate is not None else None
    if certificate_file is not None:
        _check_private(certificate_file, output, "certificate", overwrite=overwrite)
        check_file(certificate_file, (SUFFIX,), overwrite=overwrite)
    scrubbing = _scrubbing(scrub, scrub_kinds, scrub_rare_users, scrub_countries)
    if scrubbing is not None and configuration.parts[0].name == "scrub":
        raise QueryveilError("The first step scrubs the log already; leave --scrub out.")
    rules = load_policy(policy) if policy is not None else None
    if rules is not None and spark:
        raise QueryveilError(
            "--policy runs attacks, which need the log in the memory of one machine; leave --engine out, or use a"
            " sample of the users."
        )
    needs = next((part.one_machine for part in configuration.parts if part.one_machine is not None), None)
    if spark and needs is not None:  # reading a log on a cluster may take hours
        raise refusal(needs)
    read = read_counted(as_in_recipe(reader, base), log, counted_on)
    place = place or check_target(read.folder(output), output_format, overwrite)
    if scrubbing is not None:
        from queryveil.scrubbing import scrub as scrub_log

        with progress("Scrubbing"):
            read = scrub_log(read, **scrubbing)
        cluster.opened.callback(read.close)
    for warning in configuration.warnings(read):
        warn(warning.removeprefix("Warning: "))
    if seed is not None and 0 <= seed < 2**_UNGUESSED:
        warn(
            f"The seed {seed} can be guessed. Anyone who does can check guesses about rows that are not released;"
            " leave --seed out for a release that others will see."
        )
    with progress("Anonymizing"):
        release = configuration.anonymize(read, seed=seed)
    judged = None if rules is None else _judge(rules, configuration, release, read, as_json)
    written: list[Path] = []
    try:
        if map_file is not None:
            release.save_user_map(map_file)
            written.append(map_file)
        if certificate_file is not None:
            # Beside the earlier certificate, which stays if the release cannot be written.
            earlier = certificate_file.exists()
            new = certificate_file.with_name(f"{certificate_file.stem}.new{SUFFIX}") if earlier else certificate_file
            release.save_certificate(new)
            written.append(new)
        with progress("Checking and writing"):
            verdicts = release.save(place, format=output_format, allow_empty=allow_empty, about=about)
    except BaseException:
        for path in written:
            path.unlink()
        raise
    if certificate_file is not None:
        new.replace(certificate_file)
    if as_json:
        made = {
            "release": output,
            "manifest": json.loads(place.folder.read(MANIFEST)),
            "verdicts": [asdict(verdict) for verdict in verdicts],
            "notes": release.notes,
            "policy": None if judged is None else judged.as_dict(),
        }
        typer.echo(printing.json_text(made))
    else:
        _show(release, output)


def _judge(policy: "Policy", method: "Method", release: "Release", log: "QueryLog", as_json: bool) -> "Judgement":
    """What the release meets of the policy. Exit before anything is written, unless it is all."""
    from queryveil.assess.policy import judge_release

    taxonomy = getattr(method.last, "taxonomy", None)
    with progress("Judging") as step:
        named = None if taxonomy == "wordnet" else taxonomy
        found = judge_release(policy, release, log, taxonomy=named, progress=step)
    if found.meets is not True:
        if as_json:
            judged = {"release": None, "policy": found.as_dict()}
            typer.echo(printing.json_text(judged | failure("policy-not-met", found.summary)))
        else:
            typer.echo(found.summary)
            typer.echo("Nothing was written.")
        finish("policy-not-met")
    note(found.summary)
    return found


def _scrubbing(how: str | None, kinds: str | None, rare: int | None, countries: str | None) -> dict[str, Any] | None:
    """The arguments of `scrub`, checked before the log is read; None for no scrubbing."""
    if how is None:
        if kinds is not None or rare is not None or countries is not None:
            raise QueryveilError(
                "--scrub-kinds, --scrub-countries and --scrub-rare-users need --scrub remove or --scrub mask."
            )
        return None
    from queryveil.scrubbing import check_scrub

    named, where = (None if one is None else options.listed(one) for one in (kinds, countries))
    check_scrub(how, named, rare, where)
    return {"how": how, "kinds": named, "rare_term_users": rare, "countries": where}


def _check_private(path: Path, target: str, what: str, *, overwrite: bool = False) -> None:
    if Path(target).resolve() in path.resolve().parents:
        raise QueryveilError(
            f"The {what} must stay secret, so it cannot be written into the release; name another place."
        )
    if path.exists() and not overwrite:
        raise QueryveilError(f"{path} exists already; name another file for the {what}.", code="exists")
    if not path.parent.is_dir():
        raise QueryveilError(f"The folder {path.parent} for the {what} does not exist; make it first.")


def _show(release: "Release", target: str) -> None:
    from queryveil.release.summary import SCRUB_HEAD, band_rows, kept_rows, scrub_rows

    manifest = release.manifest
    head = ("queries of", "distinct", "kept", "events", "kept")
    found = band_rows(manifest)
    scrubbed = scrub_rows(manifest)
    printing.tables(
        *([printing.table("What was scrubbed", ("", *SCRUB_HEAD), scrubbed)] if scrubbed else []),
        printing.table("What was kept", ("", "in the log", "in the release", "share"), kept_rows(manifest)),
        *([printing.table("Queries by number of users", head, found)] if found else []),
        *(f"Note: {printing.printable(note)}" for note in release.notes),
        *(f"Holds: {claim.headline}" for claim in manifest.claims),
        f"Written to {printing.printable(target)}; its report.md says what is promised and what is not.",
    )
