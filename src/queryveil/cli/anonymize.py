"""queryveil anonymize: from a log to a release.

The options of a method come from its own declaration, so they depend on the method named on the command line.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queryveil.cli import options
from queryveil.errors import QueryveilError, did_you_mean

if TYPE_CHECKING:
    from queryveil.assess.policy import Policy
    from queryveil.log import QueryLog
    from queryveil.methods import Method
    from queryveil.release import Release


def command(words: list[str], *, lenient: bool) -> Callable[..., None]:
    """The verb, with the options of the method that the command line names.

    Args:
        words: The command line.
        lenient: Whether to accept a missing or unknown method, as for help and completion.
    """
    method = _method_named(words, lenient) if "anonymize" in words else None

    def anonymize(**given: Any) -> None:
        _run(method, given)

    anonymize.__doc__ = _run.__doc__
    parameters = [*_SHARED, *(_options_of(method) if method is not None else [])]
    anonymize.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    anonymize.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return anonymize


def epilog(words: list[str]) -> str | None:
    """The end of the help: all methods and what they do, or how to switch off parameters of the one that is named."""
    if "anonymize" not in words:
        return None
    from queryveil.methods import METHODS, parameters_of
    from queryveil.methods.recipe import shipped

    method = _method_named(words, True)
    if method is not None:
        off = [_off(parameter.name) for parameter in parameters_of(method) if parameter.optional]
        return f"To switch off what a recipe sets: {', '.join(off)}." if off else None
    listed = {name: method.summary for name, method in METHODS.items()}
    return (
        f"Methods:\n{options.listed(listed)}\n\nRecipes: {', '.join(shipped())}.\n\n"
        "For the parameters of a method: queryveil anonymize --method NAME --help"
    )


def _run(method: "type[Method] | None", given: dict[str, Any]) -> None:
    """Anonymize a log: write a folder with the released table, its manifest and a report.

    Nothing is written unless every claim of the release passes the verifier.
    """
    from queryveil.assess.policy import load_policy
    from queryveil.claims.certificates import SUFFIX
    from queryveil.files.folders import check_file, is_address, local_folder
    from queryveil.methods.recipe import load_recipe
    from queryveil.release import check_target

    recipe = load_recipe(given["recipe"]) if given["recipe"] is not None else None
    assert method is not None  # noqa: S101  # only help and completion come without one
    if recipe is not None and recipe.method != method.name:
        raise QueryveilError(
            f"--method is {method.name}, but the recipe is for {recipe.method}; leave one of them out."
        )
    named = {name: given[name] for name in method.model_fields if given[name] not in (None, [])}
    off = _switched_off(method, given, named)
    chosen = method(**{**(recipe.parameters if recipe is not None else {}), **named, **off})
    kept = next((name for name in off if getattr(chosen, name) is not None), None)
    if kept is not None:
        raise QueryveilError(
            f"{_off(kept)} has no effect, because {method.name} then sets {kept} to {getattr(chosen, kept)} itself;"
            " leave it out."
        )
    seed = given["seed"] if given["seed"] is not None or recipe is None else recipe.seed
    target, spark = given["output"], given["engine"] == "spark"
    wanted = (given["output_format"], given["overwrite"])
    if spark and given["output_format"] != "parquet":
        raise QueryveilError("Spark writes a release as Parquet; leave --output-format out.")
    if given["output_format"] == "aol" and not method.fits_aol:
        raise QueryveilError(f"The aol format has no place for the table of {method.name}; use parquet or csv.")
    # Whether an earlier release may be replaced is decided once, before the work begins.
    place = None if spark and is_address(target) else check_target(local_folder(target), *wanted)
    secret = Path(given["user_map"]) if given["user_map"] is not None else None
    if secret is not None:
        if getattr(chosen, "link", "user") == "none":
            raise QueryveilError(
                "A release with --link none has no pseudonyms, so there is no user map; leave --user-map out, or choose"
                " --link session or --link user."
            )
        _check_private(secret, target, "user map")
    certificate = Path(given["certificate"]) if given["certificate"] is not None else None
    if certificate is not None:
        _check_private(certificate, target, "certificate", overwrite=given["overwrite"])
        check_file(certificate, (SUFFIX,), overwrite=given["overwrite"])
    scrubbing = _scrubbing(given)
    policy = load_policy(given["policy"]) if given["policy"] is not None else None
    if policy is not None and spark:
        raise QueryveilError(
            "--policy runs attacks, which need the log in the memory of one machine; leave --engine out, or use a"
            " sample of the users."
        )
    log = options.reader(given)(given["log"])
    place = place or check_target(log.folder(target), *wanted)
    if scrubbing is not None:
        from queryveil.scrubbing import scrub

        with options.working("Scrubbing"):
            log = scrub(log, **scrubbing)
        options.opened.callback(log.close)
    for warning in chosen.warnings(log):
        typer.echo(options.printable(warning), err=True)
    if seed is not None and seed.bit_length() < _UNGUESSED:
        typer.echo(
            f"The seed {seed} can be guessed. Anyone who does can check guesses about rows that are not released;"
            " leave --seed out for a release that others will see.",
            err=True,
        )
    with options.working("Anonymizing"):
        release = chosen.anonymize(log, seed=seed)
    if policy is not None:
        _judge(policy, chosen, release, log, given["as_json"])
    written: list[Path] = []
    try:
        if secret is not None:
            release.save_user_map(secret)
            written.append(secret)
        if certificate is not None:
            # Beside the earlier certificate, which stays if the release cannot be written.
            new = certificate.with_name(f"{certificate.stem}.new{SUFFIX}") if certificate.exists() else certificate
            release.save_certificate(new)
            written.append(new)
        with options.working("Checking and writing"):
            release.save(place, format=given["output_format"], allow_empty=given["allow_empty"])
    except BaseException:
        for path in written:
            path.unlink()
        raise
    if certificate is not None:
        new.replace(certificate)
    _show(release, target, given["as_json"])


def _off(name: str) -> str:
    """The option that switches a parameter off."""
    return "--no-" + name.replace("_", "-")


def _switched_off(method: "type[Method]", given: dict[str, Any], named: dict[str, Any]) -> dict[str, None]:
    """The parameters that the command line switches off, whatever the recipe says."""
    from queryveil.methods import parameters_of

    off = [parameter for parameter in parameters_of(method) if given.get(f"without_{parameter.name}")]
    for parameter in off:
        if not parameter.optional:
            raise QueryveilError(
                f"{_off(parameter.name)} is not possible, because {method.name} needs {parameter.name}; leave it out."
            )
        if parameter.name in named:
            flag = "--" + parameter.name.replace("_", "-")
            raise QueryveilError(f"{flag} and {_off(parameter.name)} contradict each other; leave one of them out.")
    return dict.fromkeys(parameter.name for parameter in off)


def _judge(policy: "Policy", method: "Method", release: "Release", log: "QueryLog", as_json: bool) -> None:
    """Exit before anything is written, unless the release meets the policy."""
    from queryveil.assess.policy import judge_release

    taxonomy = getattr(method, "taxonomy", None)
    with options.steps("Judging") as step:
        found = judge_release(
            policy,
            release,
            log,
            taxonomy=None if taxonomy == "wordnet" else taxonomy,
            progress=step,
        )
    if found.meets is True:
        typer.echo(found.summary, err=True)
        return
    if as_json:
        typer.echo(options.json_text({"release": None, "policy": found.as_dict()}))
    else:
        typer.echo(found.summary)
        typer.echo("Nothing was written.")
    raise typer.Exit(1)


def _scrubbing(given: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of `scrub` that the options say; None for no scrubbing."""
    how, kinds, rare = given["scrub"], given["scrub_kinds"], given["scrub_rare_users"]
    if how is None:
        if kinds is not None or rare is not None:
            raise QueryveilError("--scrub-kinds and --scrub-rare-users need --scrub remove or --scrub mask.")
        return None
    from queryveil.scrubbing import check_scrub

    named = None if kinds is None else [kind.strip() for kind in kinds.split(",") if kind.strip()]
    check_scrub(how, named, rare)  # before the log is read
    return {"how": how, "kinds": named, "rare_term_users": rare}


def _check_private(secret: Path, target: str, what: str, *, overwrite: bool = False) -> None:
    if Path(target).resolve() in secret.resolve().parents:
        raise QueryveilError(
            f"The {what} must stay secret, so it cannot be written into the release; name another place."
        )
    if secret.exists() and not overwrite:
        raise QueryveilError(f"{secret} exists already; name another file for the {what}.")
    if not secret.parent.is_dir():
        raise QueryveilError(f"The folder {secret.parent} for the {what} does not exist; make it first.")


def _show(release: "Release", target: str, as_json: bool) -> None:
    from queryveil.release.summary import SCRUB_HEAD, band_rows, kept_rows, scrub_rows

    manifest = release.manifest
    if as_json:
        typer.echo(options.json_text({"release": target, **manifest.model_dump(mode="json")}))
        return
    head = ("queries of", "distinct", "kept", "events", "kept")
    found = band_rows(manifest)
    scrubbed = scrub_rows(manifest)
    options.tables(
        *([options.table("What was scrubbed", ("", *SCRUB_HEAD), scrubbed)] if scrubbed else []),
        options.table("What was kept", ("", "in the log", "in the release", "share"), kept_rows(manifest)),
        *([options.table("Queries by number of users", head, found)] if found else []),
        *(f"Note: {options.printable(note)}" for note in release.notes),
        *(f"Holds: {claim.headline}" for claim in manifest.claims),
        f"Written to {options.printable(target)}; its report.md says what is promised and what is not.",
    )


def _method_named(words: list[str], lenient: bool) -> "type[Method] | None":
    """The method of `--method NAME`, or of the recipe."""
    from queryveil.methods import METHODS
    from queryveil.methods.recipe import load_recipe

    name = _value_of("--method", words)
    recipe = _value_of("--recipe", words)
    try:
        if recipe is not None:
            name = name or load_recipe(recipe).method
        if name is None:
            raise QueryveilError(f"Name a method with --method ({', '.join(METHODS)}), or a recipe with --recipe.")
        if name not in METHODS:
            raise QueryveilError(f"There is no method '{name}'; {did_you_mean(name, METHODS)}.")
    except QueryveilError:
        if lenient:
            return None
        raise
    return METHODS[name]


def _value_of(option: str, words: list[str]) -> str | None:
    """The last value given for an option, as the parser takes it."""
    found = None
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word == option:
            found = following
        elif word.startswith(option + "="):
            found = word.removeprefix(option + "=")
    return found


def _options_of(method: "type[Method]") -> list[inspect.Parameter]:
    from queryveil.methods import parameters_of

    result = []
    for parameter in parameters_of(method):
        flag = "--" + parameter.name.replace("_", "-")
        names = [f"-{parameter.name}" if len(parameter.name) == 1 else flag]
        kind: Any = parameter.kind
        if kind is bool:
            names = [f"{flag}/--{'allow' + flag[4:] if flag.startswith('--no-') else 'no-' + flag[2:]}"]
        kind = list[kind] if parameter.many else kind
        default = ", ".join(parameter.default) if parameter.many else parameter.default
        bounds = f" ({parameter.expected})" if parameter.choices or parameter.bounds else ""
        option = typer.Option(
            *names,
            help=parameter.help[:1].upper() + parameter.help[1:] + bounds + ".",
            show_default="off" if default is None or default is False else str(default),
            rich_help_panel=f"Parameters of {method.name}",
        )
        result.append(options.keyword(parameter.name, Annotated[kind | None, option], None))
        if kind is not bool:
            # Hidden, because the epilog lists it. Parameters that cannot be off have one too, for a clear message.
            without = typer.Option(_off(parameter.name), hidden=True)
            result.append(options.keyword(f"without_{parameter.name}", Annotated[bool, without], False))
    return result


_UNGUESSED = 64
"""Bits of a seed that cannot be found by trying."""

_SHARED = [
    options.keyword("log", options.Logs),
    options.keyword(
        "output",
        Annotated[str, typer.Option("--output", "-o", help="The folder to write the release to.", show_default=False)],
    ),
    options.keyword(
        "method",
        Annotated[str | None, typer.Option("--method", help="How to anonymize; see below.", show_default=False)],
        None,
    ),
    options.keyword(
        "recipe",
        Annotated[
            str | None,
            typer.Option("--recipe", help="A recipe file, or the name of a built-in recipe.", show_default=False),
        ],
        None,
    ),
    options.keyword(
        "seed",
        Annotated[
            int | None,
            typer.Option("--seed", help="Random seed. Keep it secret.", show_default="128 random bits"),
        ],
        None,
    ),
    options.keyword(
        "output_format",
        Annotated[str, typer.Option("--output-format", help="Format of the table: parquet, aol (TSV) or csv.")],
        "parquet",
    ),
    options.keyword(
        "overwrite", Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release.")], False
    ),
    options.keyword(
        "allow_empty",
        Annotated[bool, typer.Option("--allow-empty", help="Write the release even if it has no query.")],
        False,
    ),
    options.keyword(
        "user_map",
        Annotated[
            str | None,
            typer.Option(
                "--user-map",
                help="Also write the map from original users to pseudonyms to this file. Keep it secret.",
                show_default=False,
            ),
        ],
        None,
    ),
    options.keyword(
        "certificate",
        Annotated[
            str | None,
            typer.Option(
                "--certificate",
                metavar="FILE",
                help="Also write the seed and data for quick checks, for 'verify --certificate'; ends with"
                " .certificate. As confidential as the log. Without it the seed is lost.",
                show_default=False,
            ),
        ],
        None,
    ),
    options.keyword(
        "scrub",
        Annotated[
            str | None,
            typer.Option(
                "--scrub",
                metavar="HOW",
                help="First remove events whose query has personal data, or mask the data: remove or mask."
                " Clicks on addresses with such data are left out.",
                show_default="off",
                rich_help_panel="Scrubbing",
            ),
        ],
        None,
    ),
    options.keyword(
        "scrub_kinds",
        Annotated[
            str | None,
            typer.Option(
                "--scrub-kinds",
                metavar="KIND,...",
                help="Kinds of personal data: url, email, card, iban, national_id, phone, ip, address, name_place,"
                " name.",
                show_default="all but name",
                rich_help_panel="Scrubbing",
            ),
        ],
        None,
    ),
    options.keyword(
        "scrub_rare_users",
        Annotated[
            int | None,
            typer.Option(
                "--scrub-rare-users",
                metavar="N",
                help="Also scrub words that fewer than N users typed.",
                show_default="off",
                rich_help_panel="Scrubbing",
            ),
        ],
        None,
    ),
    options.keyword("policy", options.Policy, None),
    *options.input_parameters(spark=True),
    options.keyword("as_json", options.Json, False),
]
