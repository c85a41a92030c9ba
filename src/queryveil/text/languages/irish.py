"""Irish."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a ach ag agus aici aige air an ann aon ar arna as asam atá ba bhfuil bhur bhí cad cathain ce chomh chuig chun conas cá
cé céard cén d de den do dom don duit dá dár dó dúinn eile fad faoi faoin fúm gach gan go gur i iad idir in ina inár
is isteach le leat leis lena linn liom m mar mo muid mé na nach ná nár ní níl níor nó orm ort os roimh sa san seo siad
sibh sin sinn siúd sna sé sí tar thar thú trí tá tú uaidh um ár é éis í ó ón úd
"""
_PHONES = "fón teileafón tel uimhir guthán"

LANGUAGE = Language(
    id="ga",
    label="Irish",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("IE",),
    stem=partial(snowball, algorithm="irish"),
    conjunctions=(
        "agus",
        "nó",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
