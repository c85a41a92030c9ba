"""Swedish."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
alla allt alltså att av bara blev bli blir de dem den denna deras dess dessa det detta dig din dina ditt du där då
efter ej eller en er era ert ett finns från få fått för före genom ha hade han hans har henne hennes hon honom hos hur
här i icke in ingen ingenting innan inte ja jag kan kommer kunde man med mellan men mer mig min mina mitt mot mycket
nu när någon något några och också om oss på samma samt sedan sig sin sina sitt ska skall skulle som så sådan till
under upp ut utan vad var vara varför varit varje vars vart vem vems vi vid vilka vilkas vilken vilket vår våra vårt
än är åt över
"""
_PEOPLE = """
adress telefon telefonnummer mobilnummer epost kontakt dr advokat läkare tandläkare herr fru dödsannons begravning
född födelsedag skilsmässa gift bröllop familj facebook linkedin bor hitta
"""
_BEFORE_PLACES = "i från på nära"
_INSTITUTIONS = "skola gymnasium universitet sjukhus kyrka stiftelse museum bibliotek gatan"
_PUBLIC_LIFE = "konsert biljetter låttext album film skådespelare sångare minister"
_PHONES = "telefon telefonnummer tel mobil mobilnummer nummer fax ring ringde ringer whatsapp"

LANGUAGE = Language(
    id="sv",
    label="Swedish",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=(
        "SE",
        "FI",
    ),
    stem=partial(snowball, algorithm="swedish"),
    conjunctions=(
        "och",
        "eller",
        "samt",
    ),
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
