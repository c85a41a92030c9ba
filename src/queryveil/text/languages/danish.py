"""Danish."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
ad af alle at blev blive bliver da de dem den denne der deres det dette dig din dine disse dit dog du efter eller en
end er et for fordi fra før gennem ham han hans har havde have hende hendes her hos hun hvad hvem hvilke hvilken
hvilket hvis hvor hvordan hvorfor hvornår i ikke ind ingen intet ja jeg jer jeres kan kunne man mange med meget mellem
men mens mig min mine mit mod ned nogen noget nogle nok nu når og også om op os over på selv sig sin sine sit skal
skulle som så til ud uden under var ved vi vil ville vor vores være været
"""
_PHONES = "telefon telefonnummer tlf tel mobil mobilnummer nummer fax ring ringede ringer whatsapp"
_PEOPLE = """
adresse telefon telefonnummer mobil email kontakt dr advokat læge tandlæge dødsannonce begravelse født fødselsdag
gift bryllup familie facebook linkedin bor
"""
_BEFORE_PLACES = "i fra på nær"

LANGUAGE = Language(
    id="da",
    label="Danish",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("DK",),
    stem=partial(snowball, algorithm="danish"),
    conjunctions=(
        "og",
        "eller",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
