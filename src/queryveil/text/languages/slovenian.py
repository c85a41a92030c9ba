"""Slovenian."""

from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
a ali bi bil bila bili bilo biti bo bodo bolj bom bomo boste brez da do dokler en ena eni eno ga glede h i in iz ja
jaz je ji jih jim jo k kaj kajti kako kakor kakšen kam kar katera kateri katero kdaj kdo ker ki kje kjer ko koliko kot
lahko le ma me med mene meni mi mimo moj moja moje mu na nad naj nam nas naš naša ne nek neka neki ni nisem niso nič
njega njegov njej njemu njen njih njo o ob od okoli on ona one oni ono oziroma pa po pod pred preko pri proti s sa saj
se sem si smo so sta ste svoj ta tak tako tam te tega tej tem ter ti tisti to toda tu tudi tvoj v vam vas vaš ve
vendar več vi vse vsi vso z za zakaj zaradi zelo če čez že
"""
_PHONES = "telefon tel mobitel gsm številka fax"
_PEOPLE = """
naslov telefon številka email kontakt dr odvetnik zdravnik osmrtnica umrl umrla pogreb rojen facebook linkedin
"""
_BEFORE_PLACES = "v iz pri"

LANGUAGE = Language(
    id="sl",
    label="Slovenian",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("SI",),
    conjunctions=(
        "in",
        "ali",
        "ter",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
