"""Polish."""

from functools import partial

from queryveil.text.languages import Language
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

LANGUAGE = Language(
    id="pl",
    label="Polish",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("PL",),
    stem=partial(snowball, algorithm="polish"),
    conjunctions=(
        "i",
        "oraz",
        "lub",
        "albo",
    ),
)
