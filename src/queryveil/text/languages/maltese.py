"""Maltese."""

from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
aktar b bi bid biex bil billi bin bis biss bix biċ bħal dak dan dawk dawn dik din dwar fejn fi fid fil fin fis fit fiċ
fuq għad għal għalhekk għaliex għalih għalija għall għandek għandha għandhom għandi għandna għandu hawn hemm hi hija
hu huma huwa id ieħor ikollu ikun il imma in int ir is it ix iċ jekk jew jien jiena jkun kellu kemm kien kienet kienu
kif kollha kollu kull kulħadd l la li lil lill lura m ma mad magħha magħhom magħna mal man mar mas mat max mela meta
mhijiex mhux mill min mingħajr minn minħabba n nhar qabel qatt s sa sabiex sal se skont t ta tad tagħha tagħhom
tagħkom tagħna tal tan tas tax taċ taħt tiegħek tiegħi tiegħu tkun u wara x xejn xi z ż
"""
_PHONES = "telefon tel mowbajl numru"

LANGUAGE = Language(
    id="mt",
    label="Maltese",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("MT",),
    conjunctions=(
        "u",
        "jew",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
