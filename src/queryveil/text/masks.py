"""Masks: what stands in a query in the place of something that scrubbing found, such as `<email>`."""

import pyarrow as pa
import pyarrow.compute as pc

KINDS = ("url", "email", "card", "iban", "national_id", "phone", "ip", "address", "name_place", "name")
"""What scrubbing can find, in the order in which it looks: what an earlier kind takes, a later one does not see."""
RARE = "rare"
"""The mask of words that few users typed."""
MASKS = tuple(f"<{kind}>" for kind in (*KINDS, RARE))


def without_masks(queries: pa.Array) -> pa.Array:
    """Queries with a blank in the place of each mask.

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
