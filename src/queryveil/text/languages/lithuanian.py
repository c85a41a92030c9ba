"""Lithuanian."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
ar arba aš be bei bet bus buvo būti būtų dar dėl esame esi esu gal gali galėtų iki ir irgi iš ja jai jam jas jau jei
jeigu ji jie jiems jis jo jog jos jums juo jus jūs jūsų jų kad kada kai kaip kam kas kiek kiekvienas kieno kita kitas
ko kodėl kokia koks kol kur kuri kurie kurio kuris kurių ką labai link man mane mano manęs mes mums mus mūsų na ne nei
nes net nors nuo nėra o pas pat pati pats per po prie prieš pro sau save savo su ta tai taigi taip tam tame tas tau
tave tavo te tie tiek tik to todėl tokia toks tu tuo turi tą už vis visi viskas vos yra į ši šias šie šio šios šis
šito šių šį
"""
_PHONES = "telefonas tel mobilus numeris faksas"

LANGUAGE = Language(
    id="lt",
    label="Lithuanian",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("LT",),
    stem=partial(snowball, algorithm="lithuanian"),
    conjunctions=(
        "ir",
        "arba",
        "bei",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
