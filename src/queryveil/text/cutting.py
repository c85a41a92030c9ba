"""Words of scripts that put no blanks between them: a cutter for each language puts blanks there."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.errors import OPTIONAL, QueryveilError
from queryveil.text.arrays import byte_spans
from queryveil.text.scripts import characters, scripts_of

CHARACTERS = "characters"
"""In the place of a dictionary: single characters and pairs of them."""
_LEAST_BYTE = 0xE0
"""The first byte of a letter of these scripts is not smaller; it is that of a letter of three or four bytes."""


@dataclass(frozen=True)
class Cutter:
    """How the texts of a language without blanks are cut.

    Attributes:
        label: What is cut, in English: `Chinese`.
        scripts: The scripts of its runs of letters. What is between such runs is left as it is.
        cut: Puts blanks between the words of runs; without it, runs are cut into single characters and pairs.
        modules: The modules of the optional packages that it needs.
        dictionary: The packages with their versions on the machine that read the log, or `CHARACTERS`; empty if words
            depend on this package alone. A process that has others refuses to cut.
    """

    label: str
    scripts: tuple[str, ...]
    cut: Callable[[Sequence[str]], Sequence[str]] | None = None
    modules: tuple[str, ...] = ()
    dictionary: str = ""

    def as_here(self) -> "Cutter":
        """The same with the dictionary of this machine."""
        return replace(self, dictionary=_installed(self.modules) if self.modules else "")

    @property
    def missing(self) -> str | None:
        """What is missing for words instead of characters, and how to install it; None if nothing is."""
        if self.dictionary != CHARACTERS or not self.modules:
            return None
        packages = " and ".join(OPTIONAL[module].package for module in self.modules)
        extra = OPTIONAL[self.modules[0]].extra
        is_not, it = ("is not", "it") if len(self.modules) == 1 else ("are not both", "them")
        return f"{packages}, which {is_not} installed; get {it} with: pip install 'queryveil[{extra}]'"

    def spaced(self, texts: pa.Array) -> pa.Array:
        """Texts with blanks between their words."""
        # One text of all: regular expressions and dictionaries run over it in one go.
        whole = "\n".join(pc.replace_substring(texts, "\n", " ").to_pylist())
        parts = _runs(self.scripts).split(whole)
        parts[1::2] = [f" {run} " for run in self._cut(parts[1::2])]
        return pa.array("".join(parts).split("\n"), texts.type)

    def _cut(self, runs: Sequence[str]) -> Sequence[str]:
        if self.dictionary == CHARACTERS or self.cut is None:
            return [_characters(run) for run in runs]
        self._check()
        return self.cut(runs)

    def _check(self) -> None:
        here = _installed(self.modules) if self.modules else ""
        if here != self.dictionary:
            has = "does not have it" if here == CHARACTERS else f"has {here}"
            raise QueryveilError(
                f"The words of {self.label} are cut with {self.dictionary}, and a worker {has}; give all workers the"
                " same environment as the driver."
            )


@dataclass(frozen=True)
class Chosen:
    """A cutter, and the texts that it cuts.

    Attributes:
        cutter: The cutter.
        any_of: It cuts texts with any of these scripts, as bits,
        none_of: and none of these.
    """

    cutter: Cutter
    any_of: int
    none_of: int = 0


def spaced(texts: pa.Array, cutters: Sequence[Chosen]) -> pa.Array:
    """Texts with blanks between words, by script; most texts have them already, and stay the same."""
    data = byte_spans(texts)[0]
    if len(data) == 0 or int(data.max()) < _LEAST_BYTE:
        return texts
    scripts = scripts_of(texts)
    for cutter, any_of, none_of in ((one.cutter, one.any_of, one.none_of) for one in cutters):
        wanted = (scripts & any_of != 0) & (scripts & none_of == 0)
        if wanted.any():
            mask = pa.array(wanted)
            texts = pc.replace_with_mask(texts, mask, cutter.spaced(texts.filter(mask)))
    return texts


@cache
def _runs(scripts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"([{characters(*scripts)}]+)")


@cache
def _installed(modules: tuple[str, ...]) -> str:
    """The packages of modules with their versions, or `CHARACTERS` if one is missing."""
    packages = [OPTIONAL[module].package for module in modules]
    try:
        return ", ".join(f"{package} {version(package)}" for package in packages)
    except PackageNotFoundError:
        return CHARACTERS


def _characters(run: str) -> str:
    """Single characters and pairs of them, in the order in which they begin; marks stay with their letters."""
    letters: list[str] = []
    for character in run:
        if letters and unicodedata.category(character)[0] == "M":
            letters[-1] += character
        else:
            letters.append(character)
    pairs = [first + second for first, second in pairwise(letters)]
    return " ".join(word for both in zip(letters, [*pairs, ""], strict=True) for word in both if word)
