"""The one error that queryveil raises on purpose, the one warning, and the words that messages share."""

import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Literal, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


Code = Literal["refuted", "bad-input", "exists", "empty", "policy-not-met", "other-log"]
"""What kind of failure it is, for programs. Each has an exit code (`cli/outcome.py`)."""


class QueryveilError(Exception):
    """Something the caller can fix: bad input, a bad parameter, a place that cannot be written.

    The message is one sentence that says what is wrong, where, and what to do. It never holds an
    original user id, nor a query that is not released.

    Attributes:
        code: What kind of failure it is, for programs: `bad-input`, `exists` (the output is there already), `empty`
            (nothing would be released), `policy-not-met`, `refuted` (a check failed) or `other-log` (the release was
            not made from this log).
    """

    def __init__(self, sentence: str, *, code: Code = "bad-input") -> None:
        super().__init__(sentence)
        self.code: Code = code


class NothingToReleaseError(QueryveilError):
    """A log of which nothing could be released, whatever the rest of the parameters."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, code="empty")


class StoppedError(BaseException):
    """Work that was cancelled. No handler of errors takes it for one, so it ends the work of its thread."""


class QueryveilWarning(UserWarning):
    """Something the caller should know about, which stops nothing: a risk with its number, a change of meaning."""


class Step(str):
    """The name of a step that begins, and how many of all steps are done before it.

    Attributes:
        done: Steps that are done.
        whole: All steps.
    """

    done: int
    whole: int

    def __new__(cls, name: str, done: int, whole: int) -> "Step":
        """A step, and how many are done before it."""
        step = super().__new__(cls, name)
        step.done, step.whole = done, whole
        return step


class Done(int):
    """How many rows, users or the like are done, and the share of all that they are.

    Attributes:
        share: From 0 to 1; None if it is not known.
    """

    share: float | None

    def __new__(cls, count: int, share: float | None) -> "Done":
        """How many are done, and what share that is."""
        done = super().__new__(cls, count)
        done.share = share
        return done


Progress = Callable[[str], None]
"""Called with the name of each step as it begins; a `Step` where it is known how many there are."""


_on_command_line = False  # no context variable: worker threads must see it too


@contextmanager
def command_line() -> Iterator[None]:
    """While this is open, messages name the options of the command line instead of the arguments in Python."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before


def option(name: str, value: object = None, *, python: str | None = None) -> str:
    """How to give an argument: `--link user` on the command line, `link='user'` in Python.

    Args:
        name: The argument's name in Python; the option has dashes in it.
        value: The value to suggest; None names the argument alone.
        python: What to write in Python, where that is something else.
    """
    if not _on_command_line:
        return python or (f"'{name}'" if value is None else f"{name}={value!r}")
    flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
    if isinstance(value, Mapping):
        value = ",".join(f"{key}={item}" for key, item in value.items())
    return flag if value is None or value is True else f"{flag} {shlex.quote(str(value))}"  # to copy into a shell


def parameter(owner: str, name: str, *, flag: str | None = None) -> str:
    """The beginning of a message about a wrong value: the option, or the argument and what it belongs to.

    Args:
        owner: The function or class that takes the argument.
        name: The argument's name in Python.
        flag: The option, where it has another name.
    """
    return f"The option {option(flag or name)}" if _on_command_line else f"The '{name}' parameter of {owner}"


def did_you_mean(given: str, known: Iterable[str], listed: str | None = None) -> str:
    """The end of a message about an unknown name: the known ones, after the most similar of them if one is similar.

    Args:
        given: The unknown name.
        known: The known names.
        listed: What to say about the known names; by default all of them.
    """
    names = list(known)
    near = get_close_matches(given, names, 1)
    listed = listed or f"there are {', '.join(names)}"
    return f"did you mean '{near[0]}'? {listed[0].upper()}{listed[1:]}" if near else listed


def renamed(old: str, new: str) -> None:
    """Warn that something was renamed after version 0.1; the old name works in this version only."""
    sentence = f"{old} is now called {new}; the old name will be removed in version 0.3."
    warnings.warn(sentence, QueryveilWarning, stacklevel=3)


def not_both(old: str, new: str) -> QueryveilError:
    """The error for an old name beside its new one."""
    return QueryveilError(f"'{old}' is the old name of '{new}', so both cannot be given; leave '{old}' out.")


def old_names(**names: str | None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function accept arguments by their names of version 0.1, with a warning.

    For example `@old_names(knowledge="taxonomy", read=None)`; None ignores an argument that is not needed any more.
    """

    def taking(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            for old in [name for name in names if name in given]:
                new, value = names[old], given.pop(old)
                named = f"The argument '{old}' of {function.__name__}"
                if new is None:
                    sentence = f"{named} has no effect any more and will be removed in version 0.3; leave it out."
                    warnings.warn(sentence, QueryveilWarning, stacklevel=2)
                    continue
                if new in given or new in [*signature(function).parameters][: len(args)]:
                    raise not_both(old, new)
                renamed(named, f"'{new}'")
                given[new] = value
            return function(*args, **given)

        return call

    return taking


class _Optional(NamedTuple):
    """A package that only some features need."""

    package: str
    """Its name on the package index."""
    extra: str
    """The extra of queryveil that installs it."""


OPTIONAL = {
    "adbc_driver_manager": _Optional("adbc-driver-manager", "sql"),
    "adbc_driver_postgresql": _Optional("adbc-driver-postgresql", "sql"),
    "altair": _Optional("altair", "report"),
    "cryptography": _Optional("cryptography", "sign"),
    "deltalake": _Optional("deltalake", "lake"),
    "dp_accounting": _Optional("dp-accounting", "dp"),
    "fugashi": _Optional("fugashi", "cjk"),
    "jinja2": _Optional("jinja2", "report"),
    "markupsafe": _Optional("markupsafe", "report"),
    "obstore": _Optional("obstore", "cloud"),
    "opendp": _Optional("opendp", "dp"),
    "pandas": _Optional("pandas", "frames"),
    "phonenumbers": _Optional("phonenumbers", "scrub"),
    "polars": _Optional("polars", "frames"),
    "publicsuffixlist": _Optional("publicsuffixlist", "search"),
    "py3langid": _Optional("py3langid", "languages"),
    "pyiceberg": _Optional("pyiceberg", "lake"),
    "pyspark": _Optional("pyspark", "spark"),
    "pythainlp": _Optional("pythainlp", "cjk"),
    "rjieba": _Optional("rjieba", "cjk"),
    "sklearn": _Optional("scikit-learn", "attack"),
    "starlette": _Optional("starlette", "studio"),
    "stdnum": _Optional("python-stdnum", "scrub"),
    "tantivy": _Optional("tantivy", "search"),
    "torch": _Optional("torch", "gpu"),
    "triton": _Optional("triton", "gpu"),
    "unidic_lite": _Optional("unidic-lite", "cjk"),
    "uvicorn": _Optional("uvicorn", "studio"),
    "vl_convert": _Optional("vl-convert-python", "report"),
}
"""The packages that an extra installs, by the module that is imported. They are imported where they are used."""


def missing(*modules: str) -> str | None:
    """What is missing and how to install it, as the end of a sentence; None if all modules can be imported.

    Args:
        *modules: Modules of optional packages.
    """
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            # One optional package may import another, which is then the missing one.
            root = (error.name or module).partition(".")[0]
            package, extra = OPTIONAL.get(root) or OPTIONAL[module.partition(".")[0]]
            return f"needs {package}, which is not installed; get it with: pip install 'queryveil[{extra}]'"
    return None


def require(what: str, *modules: str) -> None:
    """Refuse to go on without some optional packages.

    Args:
        what: What needs them; the beginning of the sentence.
        *modules: Their modules.

    Raises:
        QueryveilError: If one of them is not installed.
    """
    why = missing(*modules)
    if why is not None:
        raise QueryveilError(f"{what} {why}.")
