"""Italian."""

from functools import partial

from queryveil.text.languages import Cues, Language
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
_PEOPLE = """
indirizzo telefono numero cellulare email contatti dott dottor dottoressa avvocato medico dentista notaio signor
signora necrologio morto morta funerale nato nata compleanno divorzio matrimonio moglie marito famiglia facebook
linkedin abita curriculum cerca
"""
_BEFORE_PLACES = "a in di da presso vicino"
_INSTITUTIONS = """
scuola liceo istituto università clinica ospedale chiesa parrocchia fondazione museo biblioteca stadio via piazza
teatro asilo
"""
_PUBLIC_LIFE = """
concerto concerti biglietti tour testo testi album canzone film attore attrice cantante gruppo biografia frasi
ministro presidente sindaco calciatore maglia
"""
_PHONES = "telefono tel cellulare cell numero fax chiamare chiamato chiama fisso whatsapp"

LANGUAGE = Language(
    id="it",
    label="Italian",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("sarà",)),
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
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
