"""Estonian."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
aga alla ega ehk ei enam enne et ette ikka ilma ja jah juba juures ka kas keda kelle kes kogu koos kuhu kui kuid
kuidas kumb kuna kus kust kõik ma me meid meie mida midagi miks millal mille millest mina mind mingi minu mis mitte
mitu mu mul mulle muu muud na nad need neid neile nende nii ning nüüd ole oled oleks olema olen olete oli olid oma
omad on peale pealt pole pool pärast sa saab seal seda see seega sees selle seni siia siin siis siiski sina sind sinu
su sul ta tal talle te teda teid teie tema temale veel välja või ära üks üle
"""
_PHONES = "telefon telefoninumber tel mobiil number faks"

LANGUAGE = Language(
    id="et",
    label="Estonian",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("EE",),
    stem=partial(snowball, algorithm="estonian"),
    conjunctions=(
        "ja",
        "või",
        "ning",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
