"""Finnish."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
ei eikä eivät emme en et ette että he heidän heille heillä heissä heistä heitä hän hänelle hänellä hänen häntä itse ja
jo joiden joita joka jolla jolle jonka jos joskus jossa josta jota jotka kaikki kanssa kautta keitä ketkä ketä koska
kuin kuinka kuka kun kuten me meidän meille meillä miksi mikä mikäli millainen milloin minkä minne minulla minulle
minun minut minä missä mistä mitkä mitä mukaan mutta myös ne niiden niille niin niissä niistä niitä noin nuo nyt
näiden näissä näistä nämä ole olemme olen olet olette oli olivat olla on ovat poikki se sekä sen siellä siinä siitä
silla sille sinulla sinulle sinun sinut sinä sitä tai te teidän teille teillä tuo tuon tähän tämä tämän tässä tästä
tätä vaan vai vaikka vain voi yli
"""
_PHONES = "puhelin puhelinnumero puh gsm numero soita soitti fax"
_PEOPLE = """
osoite puhelin puhelinnumero sähköposti yhteystiedot lääkäri asianajaja kuolinilmoitus hautajaiset syntynyt facebook
linkedin
"""
_BEFORE_PLACES = "in"

LANGUAGE = Language(
    id="fi",
    label="Finnish",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("FI",),
    stem=partial(snowball, algorithm="finnish"),
    conjunctions=(
        "ja",
        "tai",
        "sekä",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
