"""Romanian."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a acea aceasta această aceea acei aceia acel acela acele acest acesta aceste acestei acestui acești acolo acum ai aici
al ale am ar are asta asupra atât au avea avem aș așa ca cam care ce cea cei cel cele ceva chiar ci cine cineva cu cum
când cât câte câți că cărei căror cărui către da dacă dar de deci decât deja din dintre doar după ea ei el ele era
este eu face fel fi fie fiecare fiind fost fără i la le li lor lui mai mea mei mele meu mi mie mult multă mă nici
niște noastră noi nostru noștri nu o ori orice pe pentru peste prea prin printre până s sa sale sau se spre sub sunt
suntem sunteți sînt să ta tale te toate tot toți tu tuturor tău un una unde unei unele uneori unor unu unui va vei
voastră voi vom vor vostru vreo vă îi îl îmi în înainte între întru îți și ți
"""
_PHONES = "telefon tel mobil număr numar fax suna sunat"
_PEOPLE = """
adresa telefon număr mobil email contact dr avocat medic dentist notar deces decedat înmormântare născut facebook
linkedin
"""
_BEFORE_PLACES = "în in din la lângă"

LANGUAGE = Language(
    id="ro",
    label="Romanian",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("cărei",)),
    countries=(
        "RO",
        "MD",
    ),
    stem=partial(snowball, algorithm="romanian"),
    conjunctions=(
        "și",
        "sau",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
