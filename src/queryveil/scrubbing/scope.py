"""Where personal data is looked for: in which languages names and addresses are, and of which countries numbers are."""

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil.errors import QueryveilError, did_you_mean, parameter
from queryveil.scrubbing.national import COUNTRIES
from queryveil.text import Language, language


@dataclass(frozen=True)
class Scope:
    """Languages and countries.

    Attributes:
        languages: Languages of names and addresses, as codes of ISO 639-1.
        countries: Countries of phone numbers, national ids and bank accounts, as codes of ISO 3166; None for what
            scrubbing looks for in English.
    """

    languages: tuple[str, ...] = ("en",)
    countries: tuple[str, ...] | None = None

    @property
    def language(self) -> Language:
        """All languages as one."""
        return language(*self.languages)


ENGLISH = Scope()


def scope_of(spoken: Language, countries: Sequence[str] | None) -> Scope:
    """The scope of a log in a language; by default the countries are those of its languages.

    English is spoken in so many countries that it says little about numbers: English logs are searched for the forms of
    some twenty countries, which no country switches off but those that are named.
    """
    if countries is None and spoken.ids == ENGLISH.languages:
        return ENGLISH
    named = countries if countries is not None else spoken.countries
    return Scope(spoken.ids, tuple(dict.fromkeys(named)))


def check_countries(countries: Sequence[str] | None) -> None:
    """Refuse countries that are not known.

    Raises:
        QueryveilError: If one is not.
    """
    if countries is None:
        return
    named = parameter("scrub", "countries", flag="scrub_countries")
    if not countries or isinstance(countries, str) or not isinstance(countries, Sequence):
        raise QueryveilError(f"{named} must be codes of countries, such as DE and AT. Got {countries!r} instead.")
    for wrong in (code for code in countries if not isinstance(code, str) or code not in COUNTRIES):
        listed = f"there are {', '.join(sorted(COUNTRIES))}"
        near = did_you_mean(str(wrong).upper(), COUNTRIES, listed)
        raise QueryveilError(f"{named} must be codes of countries, such as DE and AT. Got {wrong!r} instead; {near}.")
