"""German."""

from functools import partial

from queryveil.text.languages import Cues, Language
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
_PEOPLE = """
adresse adressen anschrift telefon telefonnummer handynummer nummer email e-mail kontakt dr prof rechtsanwalt anwalt
arzt zahnarzt herr frau todesanzeige traueranzeige gestorben verstorben beerdigung geboren geburtstag scheidung
verheiratet hochzeit ehefrau ehemann familie facebook xing linkedin wohnt wohnhaft lebenslauf plz suche finden
privat
"""
_BEFORE_PLACES = "in aus bei von am im nahe"
_INSTITUTIONS = """
schule grundschule gymnasium universität hochschule klinik krankenhaus kirche gemeinde stiftung museum bibliothek
institut halle stadion arena platz straße denkmal haus archiv kita apotheke hotel theater
"""
_PUBLIC_LIFE = """
konzert konzerte tickets karten tour tournee songtext lyrics album lied film filme schauspieler schauspielerin
sänger sängerin band biografie zitate minister kanzler bürgermeister bundestag fußball trikot
"""
_PHONES = """
telefon telefonnummer tel handy handynummer rufnummer fax mobil mobilnummer festnetz anrufen angerufen anruf nummer
vorwahl whatsapp
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
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
