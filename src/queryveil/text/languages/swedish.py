"""Swedish."""

from functools import partial

from queryveil.text.languages import Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
alla allt alltså att av bara blev bli blir de dem den denna deras dess dessa det detta dig din dina ditt du där då
efter ej eller en er era ert ett finns från få fått för före genom ha hade han hans har henne hennes hon honom hos hur
här i icke in ingen ingenting innan inte ja jag kan kommer kunde man med mellan men mer mig min mina mitt mot mycket
nu när någon något några och också om oss på samma samt sedan sig sin sina sitt ska skall skulle som så sådan till
under upp ut utan vad var vara varför varit varje vars vart vem vems vi vid vilka vilkas vilken vilket vår våra vårt
än är åt över
"""

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
)
