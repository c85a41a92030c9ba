"""Polish."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a aby albo ale ani aż bardzo bez bo by byli bym być był była było chce ci co coś czego czy czyli dla dlaczego dlatego
do dwa gdy gdyż gdzie go i ich ile im inna inne inny iż ja jak jaka jaki jakie jako je jeden jednak jego jej jemu jest
jestem jesteś jeszcze jeśli jeżeli już każdy kiedy kim kto która które którego której który którzy ku lecz lub ma mają
mam mi mnie mną moja moje może mu my mój na nad nam nami nas nasz nasza nic nich nie niego niej nim niż o od on ona
one oni ono oraz pan po pod podczas ponieważ poza przed przede przez przy sam się skąd swoje swój są ta tak taka taki
takie także tam te tego tej ten też to tobie tu twoja twój ty tych tylko tym u w wam was wasz we więc wszystko wy z za
ze że żeby
"""
_PEOPLE = """
adres telefon numer komórka email kontakt dr lekarz adwokat radca notariusz dentysta pan pani nekrolog zmarł zmarła
pogrzeb urodzony urodzona urodziny rozwód ślub żona mąż rodzina facebook nk linkedin mieszka zamieszkały cv szukam
"""
_BEFORE_PLACES = "w we z ze koło pod"
_INSTITUTIONS = """
szkoła gimnazjum liceum uniwersytet klinika szpital kościół parafia fundacja muzeum biblioteka stadion ulica plac
teatr przedszkole instytut pomnik
"""
_PUBLIC_LIFE = """
koncert koncerty bilety trasa tekst teksty album płyta piosenka film filmy aktor aktorka piosenkarz piosenkarka
zespół biografia cytaty minister prezydent burmistrz poseł piłkarz
"""
_PHONES = """
telefon telefonu tel dzwonił dzwoniła dzwoni komórka komórkowy nr numer faks fax dzwonić zadzwoń kontakt whatsapp
"""

LANGUAGE = Language(
    id="pl",
    label="Polish",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("mają",)),
    countries=("PL",),
    stem=partial(snowball, algorithm="polish"),
    conjunctions=(
        "i",
        "oraz",
        "lub",
        "albo",
    ),
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
