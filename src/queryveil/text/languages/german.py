"""German."""

from functools import partial

from queryveil.text.languages import Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist da dabei
dadurch dafür damit dann das dass daß dein deine deinem deinen deiner dem den denn der deren des dessen dich die dies
diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure
für gegen gibt hab habe haben hat hatte hatten hier hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist
ja jede jedem jeden jeder jedes jene kann kein keine keinen keiner können man manche mehr mein meine meinem meinen
meiner mich mir mit muss müssen nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit
sich sie sind so soll sollte sondern sowie um und uns unser unsere unter vom von vor wann war waren warum was wegen
weil welche welchem welchen welcher welches wenn wer werde werden wie wieder wieso will wir wird wo woher wohin wurde
wurden würde zu zum zur zwischen über
"""

LANGUAGE = Language(
    id="de",
    label="German",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=(
        "DE",
        "AT",
        "BE",
        "LU",
        "LI",
    ),
    stem=partial(snowball, algorithm="german"),
    conjunctions=(
        "und",
        "oder",
        "sowie",
    ),
)
