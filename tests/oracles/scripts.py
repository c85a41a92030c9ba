"""The script of a character, by the name that Unicode gives it."""

import unicodedata

_NAMES = {
    "LATIN": "latin", "GREEK": "greek", "CYRILLIC": "cyrillic", "CJK": "han", "HIRAGANA": "kana", "KATAKANA": "kana",
    "HANGUL": "hangul", "THAI": "thai", "LAO": "lao", "KHMER": "khmer", "MYANMAR": "burmese", "ARABIC": "arabic",
    "HEBREW": "hebrew", "ARMENIAN": "armenian", "GEORGIAN": "georgian", "DEVANAGARI": "devanagari", "TAMIL": "tamil",
}  # fmt: skip


def script(character: str) -> str | None:
    """The script of a letter; None for anything else."""
    if unicodedata.category(character)[0] != "L":
        return None
    return _NAMES.get(unicodedata.name(character, "").split(" ")[0])
