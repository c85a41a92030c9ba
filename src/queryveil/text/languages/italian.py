"""Italian."""

from functools import partial

from queryveil.text.languages import Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a abbia abbiamo ad agli ai al all alla alle allo anche ancora avere aveva avevano c che chi ci ciò coi col come con
contro cosa così cui d da dagli dai dal dall dalla dalle dallo de degli dei del dell della delle dello dentro di dopo
dove dunque e ed era erano essere fa fino fra già gli ha hai hanno ho i il in io l la le lei li lo loro lui ma me
mentre mi mia mie miei mio molto ne negli nei nel nell nella nelle nello no noi non nostra nostre nostri nostro né o
od ogni oppure per perché però più po poi prima proprio qual quale quali quando quanta quanti quanto quella quelle
quelli quello questa queste questi questo qui s sarà se sei senza si sia siamo siete sono sopra sotto sta stata stati
stato su sua sue sugli sui sul sull sulla sulle sullo suo suoi tra tu tua tue tuo tuoi tutta tutte tutti tutto un una
uno v vi voi vostra vostro è
"""

LANGUAGE = Language(
    id="it",
    label="Italian",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=(
        "IT",
        "SM",
    ),
    stem=partial(snowball, algorithm="italian"),
    conjunctions=(
        "e",
        "o",
        "oppure",
    ),
)
