"""Slovak."""

from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
a aby aj ako akože aká aké aký ale alebo ani asi až bez bol bola boli bolo bude budem budú by byť cez dnes do ešte ho
i iba ich im iná iné iný ja je jeho jej jemu k kam kde kedy keď kto ktorá ktoré ktorí ktorý ktorých ku lebo len ma
medzi mi mne mnou moja moje my má máte môj môže mňa na nad nami ne nech než nich nie nič nám nás náš ním o od odo on
ona oni ono po pod podľa pokiaľ pre pred predo preto pretože prečo pri s sa sem si sme so som ste svoj sú ta tak také
takže tam teda ten tento tie tieto tiež to toho tom toto tou tu tvoj ty táto u už v vami vo vy vám vás váš však všetko
z za zo áno či čo ďalší že
"""
_PHONES = "telefón telefon tel mobil číslo fax zavolať volal volala volá"
_PEOPLE = """
adresa telefón číslo mobil email kontakt mudr judr lekár advokát parte zomrel zomrela pohreb facebook linkedin
"""
_BEFORE_PLACES = "v vo z zo pri"

LANGUAGE = Language(
    id="sk",
    label="Slovak",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("byť",)),
    countries=("SK",),
    conjunctions=(
        "a",
        "i",
        "alebo",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
