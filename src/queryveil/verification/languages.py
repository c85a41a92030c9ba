"""Were the words of a release cut, and was its log scrubbed, with the packages that are here?

Another dictionary gives other words, so that a promise about words may fail although it was kept. If nothing else
fails, a release is not refuted, and not accepted either: it cannot be checked here. The same holds for other lists of
phone numbers.
"""

from importlib.metadata import PackageNotFoundError, version

from queryveil.claims import Verdict
from queryveil.errors import QueryveilError, option
from queryveil.log import QueryLog
from queryveil.release import Release
from queryveil.release.manifest import Languages, Manifest, languages_of
from queryveil.text.languages import DEFAULT

_SCRUBBING = ("phonenumbers", "python-stdnum")
_ENGLISH = Languages(ids=(DEFAULT,))


def other_words(manifest: Manifest, log: QueryLog) -> str | None:
    """Which dictionary here is another than that of a release, as the end of a sentence; None if all are the same.

    Raises:
        QueryveilError: If the log was read in other languages, which its reader can change.
    """
    stated = manifest.language or _ENGLISH
    if stated.ids != log.language.ids:
        made, read = ",".join(stated.ids), ",".join(log.language.ids)
        raise QueryveilError(
            f"The release was made in the languages {made}, and the log was read in {read}; read it with"
            f" {option('language', made)}."
        )
    here = log.language.dictionaries(-1)
    for label, dictionary in stated.dictionaries.items():
        if here.get(label) != dictionary:
            has = here.get(label, "nothing")
            return f"{label} was cut with {dictionary} when it was made, and is cut with {has} here"
    return None


def other_packages(manifest: Manifest) -> str | None:
    """Which package of scrubbing is here in another version than the release says, as the end of a sentence."""
    for name, stated in (manifest.scrub.packages if manifest.scrub is not None else {}).items():
        try:
            here = version(name) if name in _SCRUBBING else None
        except PackageNotFoundError:
            here = None
        if here != stated:
            has = "is not used" if name not in _SCRUBBING else f"is {here or 'missing'}"
            return f"its log was scrubbed with {name} {stated}, which {has} here"
    return None


def language_right(release: Release, log: QueryLog) -> Verdict | None:
    """Whether the manifest names the dictionaries that a log like this needs, and no others; None if there are none."""
    claim = "The manifest says how the queries of the log were cut into words."
    hidden = release.manifest.private or release.manifest.series is not None
    stated, needed = release.manifest.language, languages_of(log, private=hidden)
    if stated is None and needed is None:
        return None
    stated, needed = stated or _ENGLISH, needed or _ENGLISH
    same = list(stated.dictionaries) == list(needed.dictionaries)
    return Verdict(claim, same, None if same else "it names dictionaries of other languages than the log has")
