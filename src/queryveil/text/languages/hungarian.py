"""Hungarian."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a abban ahol aki akik akkor alatt amely amelyek ami amikor amit annak arra arról az azok azon azonban azt aztán azzal
azért be belül benne bár csak de e ebben egy egyik el ellen elég előtt ennek ennyi erre ez ezek ezen ezt ezzel ezért
fel felé ha hanem hogy hogyan hol honnan hova hát ide igen ilyen is itt kell ki kívül között közül le lehet lesz lett
maga magát majd meg mellett mely melyik mennyi mert mi mikor milyen minden mint mit mivel most már más még ne nekem
neki nem nincs nélkül oda olyan ott pedig rá s sem semmi szerint számára te tehát ti után utána vagy vagyok valaki
valami van vannak vele volna volt voltak által át én és így ön össze úgy ő ők őket
"""
_PHONES = "telefon telefonszám tel mobil szám fax hívás hívott hív"
_PEOPLE = """
cím telefon telefonszám mobil email dr ügyvéd orvos fogorvos gyászjelentés meghalt temetés született facebook
linkedin
"""

LANGUAGE = Language(
    id="hu",
    label="Hungarian",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("bár",)),
    countries=("HU",),
    stem=partial(snowball, algorithm="hungarian"),
    conjunctions=(
        "és",
        "vagy",
        "meg",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
    ),
)
