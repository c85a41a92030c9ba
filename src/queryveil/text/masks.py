"""Masks, such as `<email>`, which replace personal data that scrubbing found in a query."""

import pyarrow as pa
import pyarrow.compute as pc

KINDS = ("url", "email", "card", "iban", "national_id", "phone", "ip", "address", "name_place", "name")
"""What scrubbing can find, in the order of the search: a later kind does not see what an earlier one found."""
RARE = "rare"
"""The mask of words that few users typed."""
MASKS = tuple(f"<{kind}>" for kind in (*KINDS, RARE))


def without_masks(queries: pa.Array) -> pa.Array:
    """Queries with a space instead of each mask.

    Example:
        >>> without_masks(pa.array(["cheap <email>,pizza", "html <h1>"])).to_pylist()
        ['cheap  ,pizza', 'html <h1>']
    """
    if pa.types.is_null(queries.type):  # what pa.array makes of no queries at all
        return queries.cast(pa.string())
    held = pc.fill_null(pc.match_substring(queries, "<"), False)  # few, so that the costly look is at few
    if not pc.any(held).as_py():
        return queries
    plain = pc.replace_substring_regex(queries.filter(held), "|".join(MASKS), " ")
    return pc.replace_with_mask(queries, held, plain)
