"""The normal form in which queries are compared."""

import pyarrow as pa
import pyarrow.compute as pc

# NFKC has already turned the many spaces of Unicode into U+0020. What is left are control characters, which have no
# business in a query (a tab would break a released TSV, an escape a terminal), and the line separators.
_BLANKS = r"[\x00-\x20\x7f-\x{9f}\x{1680}\x{2028}\x{2029}]"
_UNTIDY = f"^{_BLANKS}|{_BLANKS}$|{_BLANKS}{{2}}|[\\x00-\\x1f\\x7f-\\x{{9f}}\\x{{1680}}\\x{{2028}}\\x{{2029}}]"


def normal_form(queries: pa.Array) -> pa.Array:
    r"""Unicode NFKC, lower case, control characters and white space folded to one blank, ends stripped.

    Args:
        queries: An Arrow array of strings; nulls stay null.

    Returns:
        An array of the same length. Applying the function twice changes nothing.

    Example:
        >>> normal_form(pa.array(["  Cell\tPhone ", "ＣＡＳＥ"])).to_pylist()
        ['cell phone', 'case']
    """
    text = pc.utf8_lower(pc.utf8_normalize(queries, form="NFKC"))
    if not pc.all(pc.string_is_ascii(text), min_count=0).as_py():
        # Lower case can undo the normal form of a few letters, and their normal form their lower case.
        text = pc.utf8_lower(pc.utf8_normalize(text, form="NFKC"))
        text = pc.utf8_normalize(text, form="NFKC")
    return fold_blanks(text)


def fold_blanks(text: pa.Array) -> pa.Array:
    """Control characters and white space folded to one blank, ends stripped."""
    untidy = pc.match_substring_regex(text, _UNTIDY)
    if not pc.any(untidy, min_count=0).as_py():
        return text
    # Tidying costs five times what finding does, and few queries need it.
    tidy = pc.replace_substring_regex(text.filter(untidy), f"{_BLANKS}+", " ")
    return pc.replace_with_mask(text, pc.fill_null(untidy, False), pc.utf8_trim(tidy, " "))
