"""What a query is as text: normal form, words, n-grams, stop words.

Text is handled here, over Arrow arrays of distinct queries, and nowhere else; all later layers see integers.
"""

from queryveil.text.normal import fold_blanks, normal_form
from queryveil.text.stopwords import STOP_WORDS
from queryveil.text.words import Words, words

__all__ = ["STOP_WORDS", "Words", "fold_blanks", "normal_form", "words"]
