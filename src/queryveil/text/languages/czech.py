"""Czech."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a aby aj ale ani asi až bez bude budou by byl byla byli bylo být co další do i jak jako jaká jaké jaký je jeho jejich
její jen jestli ještě ji jich jim již jsem jsi jsme jsou jste já k kam kde kdo kdy když ke kolik která které který
kteří ku ma mají mezi mi mnou mně moje my má mít mě můj na nad ne nebo nebyl není než ni nic nám námi nás náš o od on
ona oni ono pak po pod podle pro proto protože proč před přes při s se si skoro so své svůj ta tak také takže tam tato
tedy ten tento ti to tohle toho tom tomto tu tuto ty té u už v ve vy vám vámi vás váš více však z za zda či že
"""
_PHONES = "telefon tel mobil číslo fax zavolat volal volala volá"
_PEOPLE = """
adresa telefon číslo mobil email kontakt mudr judr lékař advokát parte zemřel zemřela pohřeb narozen facebook
linkedin
"""
_BEFORE_PLACES = "v ve z ze u"

LANGUAGE = Language(
    id="cs",
    label="Czech",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("být",)),
    countries=("CZ",),
    stem=partial(snowball, algorithm="czech"),
    conjunctions=(
        "a",
        "i",
        "nebo",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
