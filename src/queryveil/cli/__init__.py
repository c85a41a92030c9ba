"""The command line: one file for each verb. `outcome.py` has the exit codes."""

import errno
import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import typer

from queryveil.cli import (
    anonymize,
    attack,
    categorize,
    cluster,
    compare,
    concepts,
    evaluate,
    explain,
    export,
    fragments,
    keygen,
    messages,
    neighbours,
    plan,
    printing,
    profile,
    progress,
    report,
    reproduce,
    series,
    sign,
    studio,
    sweep,
    synth,
    taxonomy,
    verify,
    web_directory,
)
from queryveil.cli.help import Verb, Verbs
from queryveil.cli.method_options import belongs_to, every_flag, named_by_step
from queryveil.cli.outcome import EXITS, Ending, failure
from queryveil.cli.reading import reads_log
from queryveil.errors import QueryveilError, QueryveilWarning, command_line, did_you_mean, renamed

_KNOWLEDGE = {"--knowledge": "--taxonomy"}
OLD: dict[str, dict[str, str]] = {
    "": {"link": "categorize", "knowledge": "taxonomy", "directory": "web-directory"},
    "anonymize": {
        **_KNOWLEDGE,
        "--no-knowledge": "--no-taxonomy",
        **dict.fromkeys(("-d", "--d"), "--max-queries-per-user"),
        "--no-d": "--no-max-queries-per-user",
    },
    "attack": {**_KNOWLEDGE, "-m": "--n-known"},
    "compare": {**_KNOWLEDGE, "--directory": "--web-directory", "--processes": "--jobs"},
    **dict.fromkeys(("categorize", "evaluate", "explain", "report", "reproduce", "sign", "verify"), _KNOWLEDGE),
}
"""The names of version 0.1 and what they are called now: of verbs, and of the options of each verb."""


VERBS: dict[str, Callable[..., None] | None] = {
    "synth": synth.synth,
    "profile": reads_log(profile.profile, spark=True),
    "concepts": reads_log(concepts.concepts),
    "sweep": reads_log(sweep.sweep),
    "neighbours": reads_log(neighbours.neighbours),
    "fragments": reads_log(fragments.fragments, spark=True),
    "anonymize": None,  # its options depend on the method
    "verify": reads_log(verify.verify, spark=True),
    "studio": reads_log(studio.studio),
    "sign": reads_log(sign.sign),
    "keygen": keygen.keygen,
    "export": export.export,
    "attack": reads_log(attack.attack, spark=True),
    "compare": reads_log(compare.compare),
    "plan": reads_log(plan.plan),
    "explain": reads_log(explain.explain),
    "reproduce": reads_log(reproduce.reproduce),
    "evaluate": reads_log(evaluate.evaluate, spark=True),
    "report": reads_log(report.report, spark=True),
    "categorize": reads_log(categorize.categorize),
}
EPILOGS = {"anonymize": anonymize.epilog, "attack": attack.epilog, "evaluate": evaluate.epilog}


def build(words: list[str]) -> typer.Typer:
    """The application; `words` are the command line's, because a method brings its own options."""
    app = typer.Typer(
        name="queryveil",
        cls=Verbs,
        help="Anonymize web-search query logs: a log in, a verified release out.",
        epilog="To start:  queryveil synth -o log.tsv.gz  &&  queryveil profile log.tsv.gz",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name, verb in VERBS.items():
        epilog = EPILOGS[name](words) if name in EPILOGS else None
        app.command(name, epilog=epilog, cls=Verb)(verb or anonymize.command(words, lenient=_asks_for_help(words)))
    app.add_typer(_group("taxonomy", show=taxonomy.show), help="Browse a taxonomy.")
    web = "Make a taxonomy from the dump of a web directory."
    app.add_typer(_group("web-directory", build=web_directory.build), help=web)
    verbs: dict[str, Callable[..., None]] = {
        "init": series.init,
        "add": reads_log(series.add, spark=True),
        "status": series.status,
        "verify": reads_log(series.verify),
        "attack": reads_log(series.attack),
        "links": series.links,
        "forget": series.forget,
    }
    app.add_typer(_group("series", **verbs), help="Release after release: a series that is safe as a whole.")
    for part in (app, *(group.typer_instance for group in app.registered_groups)):
        for command in part.registered_commands if part is not None else ():
            # Typer keeps line breaks, and those of a docstring are made for the source.
            command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(command.callback) or "")
            if command.callback is not None:
                command.callback = messages.with_messages(command.callback)
    return app


def _group(name: str, **verbs: Callable[..., None]) -> typer.Typer:
    """Verbs under a common word."""
    group = typer.Typer(name=name, cls=Verbs, no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)  # else Typer would take a single verb for the group itself
    for verb, function in verbs.items():
        group.command(verb, cls=Verb)(function)
    return group


def _completed_words() -> list[str]:
    """The command line that a shell wants completed; bash passes it in one variable, zsh and fish in another."""
    return (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()


def _modern(words: list[str]) -> list[str]:
    """The words of a command line with old names replaced, each with a warning."""
    if not words:
        return words
    verb = _replaced(words[0], OLD[""])
    own, end = OLD.get(verb, {}), words.index("--") if "--" in words else len(words)
    return [verb, *(_replaced(word, own) for word in words[1:end]), *words[end:]]


def _replaced(word: str, names: dict[str, str]) -> str:
    """A verb or an option by its present name; a value may be attached, as in `--knowledge=wordnet` or `-m1,2`."""
    name, equals, value = word.partition("=")
    if len(word) > 2 and word[:2] in names:
        name, equals, value = word[:2], "=", word[2:]
    if name not in names:
        return word
    renamed(f"'{name}'", f"'{names[name]}'")
    return names[name] + equals + value


def _asks_for_help(words: list[str]) -> bool:
    return "--help" in words or "-h" in words or "_QUERYVEIL_COMPLETE" in os.environ


def _version(asked: bool) -> None:
    if asked:
        from queryveil import __version__

        typer.echo(f"queryveil {__version__}")
        raise typer.Exit


def root(
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", is_eager=True, callback=_version
    ),
) -> None:
    """Anonymize web-search query logs: a log in, a verified release out."""


def main() -> None:
    """Run the command line; every failure is one sentence and an exit code."""
    # A run that is terminated must still remove unfinished files.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _stop)
    warnings.simplefilter("always", QueryveilWarning)
    warnings.showwarning = partial(_warn, set())
    words = sys.argv[1:]
    messages.prepare(words)
    fail = partial(_fail, as_json="--json" in messages.options(words))
    try:
        with command_line():
            words = _modern(words)
            if "--then" in words or any(word.startswith("--then=") for word in words):
                words = named_by_step(words)
            sys.exit(build(words or _completed_words())(words, standalone_mode=False))
    except QueryveilError as error:
        _leave_if_stopped(fail)
        fail(str(error), error.code)
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)
            sys.exit(EXITS["usage"])
        fail(_usage(error, words), "usage")
    except (KeyboardInterrupt, SystemExit) as error:
        _leave_if_stopped(fail)
        if isinstance(error.__context__, BrokenPipeError):  # Typer and Rich would end with 1, which means refuted
            _leave_pipe()
        raise
    except BrokenPipeError:
        _leave_pipe()
    except MemoryError:
        fail("There is not enough memory for this log.", "bad-input")
    except Exception as error:
        _leave_if_stopped(fail)
        if isinstance(error, OSError) and error.errno in _WRONG_PATHS and error.filename is not None:
            name = str(error.filename)
            shown = name if len(name) <= 80 else f"{name[:40]}…{name[-39:]}"
            fail(f"The path {shown} cannot be used: {error.strerror}; give another.", "bad-input")
        # Messages of other packages may quote the log, so they are shown only on request.
        if os.environ.get("QUERYVEIL_DEBUG"):
            raise
        fail(f"This is a bug in queryveil ({type(error).__name__}); QUERYVEIL_DEBUG=1 shows where.", "bug")
    finally:
        cluster.opened.close()


def _leave_pipe() -> NoReturn:
    """Exit as a process does whose reader went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _usage(error: typer.TyperException, words: list[str]) -> str:
    """What is wrong with a command line, and where its options are listed."""
    context: Any = getattr(error, "ctx", None)
    sentence = error.format_message()
    if context is None:
        return sentence
    if hasattr(error, "possibilities"):  # an unknown option
        name = str(getattr(error, "option_name", ""))
        owner = belongs_to(name, words) if context.info_name == "anonymize" else None
        if owner is not None:
            return owner
        known = [flag for one in context.command.params if not getattr(one, "hidden", False) for flag in one.opts]
        known += every_flag() if context.info_name == "anonymize" else ()
        near = did_you_mean(name, known, f"see '{context.command_path} --help'")
        return f"There is no option {name}; {near}."
    sentence = sentence[:1].upper() + sentence[1:].removesuffix(".")
    end = " See" if sentence.endswith("?") else "; see"
    return f"{sentence}{end} '{context.command_path} --help'."


def _warn(shown: set[str], message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    """Show each warning of queryveil once, as a sentence; warnings of other packages do not concern the user."""
    if issubclass(category, QueryveilWarning) and str(message) not in shown:
        shown.add(str(message))
        progress.warn(str(message))


_WRONG_PATHS = (errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES)
_stopped: list[int] = []


def _leave_if_stopped(fail: Callable[[str, Ending], None]) -> None:
    """Exit as a stopped process does: the engines turn an interrupt into an error of their own."""
    if _stopped and _stopped[0] == signal.SIGINT:
        fail("Stopped.", "stopped")
    if _stopped:
        sys.exit(128 + _stopped[0])


def _stop(number: int, frame: FrameType | None) -> None:
    _stopped.append(number)
    tables = sys.modules.get("queryveil.engines.duckdb")
    if tables is not None:
        tables.stopping.set()
    # An exception in the middle of a call to Spark would break the connection. Its jobs are cancelled instead, which
    # ends the call. A second signal stops at once.
    if len(_stopped) == 1 and cluster.stop_jobs():
        return
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _fail(sentence: str, code: Ending, *, as_json: bool = False) -> None:
    if as_json:
        typer.echo(printing.json_text(failure(code, printing.printable(sentence))))
    progress.fail(sentence, code)
    sys.exit(EXITS[code])
