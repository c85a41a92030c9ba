"""What a query is as text: its normal form, and what depends on its language, such as words and stop words.

Text is handled here, over Arrow arrays of distinct queries, and nowhere else; all later layers see integers.
"""

from queryveil.text.languages import LANGUAGES, Language, language
from queryveil.text.normal import fold_blanks, normal_form
from queryveil.text.words import Words, split_at_blanks

__all__ = ["LANGUAGES", "Language", "Words", "fold_blanks", "language", "normal_form", "split_at_blanks"]
