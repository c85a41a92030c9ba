"""Were words cut, a log scrubbed and queries compared with the packages and tables that are here?

Another dictionary gives other words, so that a promise about words may fail although it was kept. If nothing else
fails, a release is not refuted, and not accepted either: it cannot be checked here. The same holds for other lists of
phone numbers, and for another embedding or other lists of names.
"""

from importlib.metadata import PackageNotFoundError, version

from queryveil.claims import AffineUsers, Claim, Verdict
from queryveil.claims.similarity import tables_digest
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


def other_tables(manifest: Manifest) -> str | None:
    """Whether queries were compared by another embedding or other lists than those here, as the end of a sentence."""
    if not any(_by_other_tables(claim) for claim in manifest.claims):
        return None
    return "its queries were compared with the embedding and the lists of names of another version"


def doubtful_claims(manifest: Manifest, words: str | None) -> set[str]:
    """The statements that may hold and not be found to, if words are cut or queries are compared otherwise here."""
    return {one.statement for one in manifest.claims if (words and one.of_words) or _by_other_tables(one)}


def _by_other_tables(claim: Claim) -> bool:
    return isinstance(claim, AffineUsers) and claim.tables not in (None, tables_digest())


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
