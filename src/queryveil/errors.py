"""The one error that queryveil raises on purpose, the one warning, and the sentence about a package that is missing."""

import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class QueryveilError(Exception):
    """Something the caller can mend: bad input, a bad parameter, a place that cannot be written.

    The message is one sentence that says what is wrong, where, and what to do. It never holds an
    original user id, nor a query that is not released.
    """


class QueryveilWarning(UserWarning):
    """Something that goes on, and that the caller should know of: a risk with its number, a change of meaning."""


Progress = Callable[[str], None]
"""Called with what is being done, as it begins."""


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """What there is instead of a name that is not known, the nearest first where one is near."""
    names = list(known)
    near = get_close_matches(given, names, 1)
    listed = f"there are {', '.join(names)}"
    return f"did you mean '{near[0]}'? {listed[0].upper()}{listed[1:]}" if near else listed


def renamed(old: str, new: str) -> None:
    """Give notice that something has another name since version 0.1; the old one works in this version alone."""
    warnings.warn(f"{old} is now called {new}; the old name ends with version 0.2.", QueryveilWarning, stacklevel=3)


def old_names(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function take arguments by their names of version 0.1, with notice: `@old_names(knowledge="taxonomy")`."""

    def taking(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **given: P.kwargs) -> T:
            for old in names.keys() & given.keys():
                renamed(f"The argument '{old}' of {function.__name__}", f"'{names[old]}'")
                given[names[old]] = given.pop(old)
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
    "altair": _Optional("altair", "report"),
    "cryptography": _Optional("cryptography", "sign"),
    "jinja2": _Optional("jinja2", "report"),
    "markupsafe": _Optional("markupsafe", "report"),
    "opendp": _Optional("opendp", "dp"),
    "pandas": _Optional("pandas", "spark"),
    "phonenumbers": _Optional("phonenumbers", "scrub"),
    "publicsuffixlist": _Optional("publicsuffixlist", "search"),
    "pyspark": _Optional("pyspark", "spark"),
    "sklearn": _Optional("scikit-learn", "attack"),
    "stdnum": _Optional("python-stdnum", "scrub"),
    "tantivy": _Optional("tantivy", "search"),
    "vl_convert": _Optional("vl-convert-python", "report"),
}
"""The packages that an extra installs, by the module that is imported. They are imported where they are used."""


def missing(*modules: str) -> str | None:
    """What is lacking and how to install it, as the end of a sentence; None if all modules can be imported.

    Args:
        *modules: Modules of optional packages.
    """
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            # One optional package may import another, which is then the one that is not there.
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
