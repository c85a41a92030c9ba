"""Latvian."""

from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
aiz ap ar arī bet bez bija biju bijām būs būt būšu caur cik citi dēļ es esam esat esi esmu gan gar ir ja jau jo jā jūs
jūsu ka kad kam kamēr kas katrs kaut ko kopš kur kura kuras kuri kurš kā kāda kādi kāds kādā kāpēc lai līdz man mana
mani mans manu mums mēs mūsu nav ne nekā no nu nē pa par pat pie pirms pret priekš pār pēc savs savu sev sevi starp
tad tagad te tev tevi tiek tik tika tikai to tomēr tos tu tur tā tāda tāds tās un uz vai var varbūt vien viena viens
vienu virs visi viss viņa viņas viņi viņu viņš zem šajā šie šis šo šī
"""
_PHONES = "telefons tālrunis tel mobilais numurs fakss"

LANGUAGE = Language(
    id="lv",
    label="Latvian",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("būs",)),
    countries=("LV",),
    conjunctions=(
        "un",
        "vai",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
