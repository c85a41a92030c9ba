"""The normal form in which queries are compared."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from queryveil.text.arrays import byte_spans

# NFKC has already turned the many spaces of Unicode into U+0020. What is left are control characters, which do not
# belong in a query (a tab would break a released TSV, an escape a terminal), and the line separators.
_BLANKS = r"[\x00-\x20\x7f-\x{9f}\x{1680}\x{2028}\x{2029}]+"


def normal_form(queries: pa.Array) -> pa.Array:
    r"""Unicode NFKC, lower case, control characters and white space folded to one space, ends stripped.

    Args:
        queries: An Arrow array of strings; nulls stay null.

    Returns:
        An array of the same length. Applying the function twice changes nothing.

    Example:
        >>> normal_form(pa.array(["  Cell\tPhone ", "ＣＡＳＥ"])).to_pylist()
        ['cell phone', 'case']
    """
    from queryveil.kernels.strings import CAPITAL, FOREIGN, UNTIDY

    return _where(queries, CAPITAL | FOREIGN | UNTIDY, _normal_form)


def fold_blanks(texts: pa.Array) -> pa.Array:
    """Control characters and white space folded to one space, ends stripped."""
    from queryveil.kernels.strings import FOREIGN, UNTIDY

    return _where(texts, FOREIGN | UNTIDY, _fold)


def _normal_form(texts: pa.Array) -> pa.Array:
    for _ in range(2):  # lower case can undo the normal form of a few letters, and their normal form their lower case
        texts = pc.utf8_lower(pc.utf8_normalize(texts, form="NFKC"))
    return _fold(pc.utf8_normalize(texts, form="NFKC"))


def _fold(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim(pc.replace_substring_regex(texts, _BLANKS, " "), " ")


def _where(texts: pa.Array, kinds: int, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Change only the texts that need it: most texts of a log do not, and checking is cheap."""
    from queryveil.kernels.strings import kinds_of

    wanted = pa.array(kinds_of(*byte_spans(texts)) & kinds != 0)
    some = texts.filter(wanted)
    return texts if len(some) == 0 else pc.replace_with_mask(texts, wanted, change(some))
