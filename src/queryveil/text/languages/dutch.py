"""Dutch."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
aan al alle als altijd ander bij binnen daar dan dat de der deze die dit doch door dus e een eens en er ge geen had
heb hebben heeft hem hen het hier hij hoe hun ik in is ja je jij jou jouw jullie kan kon kunnen maar me meer men met
mij mijn moet moeten mogen na naar niet niets nog nu of om omdat onder ons onze ook op over per reeds te tegen toch
toen tot tussen u uit uw van vanaf vanwege veel voor waar waarom wanneer want waren was wat we wel welke werd wie wij
wil worden wordt zal ze zelf zich zij zijn zo zonder zou
"""
_PEOPLE = """
adres telefoon telefoonnummer nummer mobiel email contact dr advocaat huisarts tandarts notaris dhr mevr meneer
mevrouw overlijden overleden begrafenis geboren verjaardag scheiding huwelijk getrouwd vrouw man familie facebook
linkedin woont cv zoeken
"""
_BEFORE_PLACES = "in uit te van bij"
_INSTITUTIONS = """
school basisschool college universiteit kliniek ziekenhuis kerk stichting museum bibliotheek stadion straat plein
theater
"""
_PUBLIC_LIFE = """
concert concerten tickets tour songtekst album lied film acteur actrice zanger zangeres band biografie minister
burgemeester voetballer shirt
"""
_PHONES = "telefoon telefoonnummer tel mobiel gsm nummer fax bellen belt gebeld whatsapp"

LANGUAGE = Language(
    id="nl",
    label="Dutch",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=(
        "NL",
        "BE",
    ),
    stem=partial(snowball, algorithm="dutch"),
    conjunctions=(
        "en",
        "of",
    ),
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
