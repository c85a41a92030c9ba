"""Croatian."""

from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
a ako ali bez bi bih bila bili bilo bio biti do dok gdje god i ih ili im iz iza između je jer jesam jesu joj još ju
kad kada kako kao kod koja koje koji kojoj kojom koju koliko kroz li me mene meni mi moj moja moje mu na nad nakon nam
nas naš ne nego nekoga nema neće ni nije nisam nisu njega njegov njemu njih njihov njoj o od oko on ona oni ono osim
ova ovaj ove ovo po pod pored prema pri prije protiv s sa sam samo se si smo ste su sve svi svoj ta tada taj tako te
ti tko to toga toj tu tvoj u uz vam vas vaš vi više za zašto će ću što
"""
_PHONES = "telefon tel mobitel broj fax"
_PEOPLE = """
adresa telefon broj mobitel email kontakt dr odvjetnik liječnik osmrtnica umro umrla pogreb rođen facebook linkedin
"""
_BEFORE_PLACES = "u iz kod"

LANGUAGE = Language(
    id="hr",
    label="Croatian",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=(
        "HR",
        "BA",
    ),
    conjunctions=(
        "i",
        "ili",
        "te",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
