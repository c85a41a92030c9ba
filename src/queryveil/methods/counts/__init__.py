"""Tables of counts: one row per combination of chosen columns."""
