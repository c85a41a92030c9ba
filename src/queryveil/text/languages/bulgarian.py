"""Bulgarian."""

from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
а ако без беше бях в вас ви вие все всеки всички във г да дали до докато други другия е ето за зад заради и из или им
как каква какво като кога когато кое което кои които кой който колко коя край къде към ли ме между мен ми много му на
над най нас не него нея ни ние но някой няма о обаче около освен от по под пред преди през при с са само се сега си
след сме сте съм със тази така там твой те тези ти то това тогава този той тоя тук тя у че чрез ще що я
"""
_PHONES = "телефон тел мобилен номер факс"
_PEOPLE = """
адрес телефон номер мобилен имейл д-р адвокат лекар зъболекар некролог починал роден фейсбук
"""
_BEFORE_PLACES = "в във от до"

LANGUAGE = Language(
    id="bg",
    label="Bulgarian",
    stop_words=frozenset(_STOP_WORDS.split()),
    accented=frozenset(("край",)),
    scripts=("cyrillic",),
    countries=("BG",),
    conjunctions=(
        "и",
        "или",
    ),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
    ),
)
