"""The one error that queryveil raises on purpose, and the one warning."""


class QueryveilError(Exception):
    """Something the caller can mend: bad input, a bad parameter, a place that cannot be written.

    The message is one sentence that says what is wrong, where, and what to do. It never holds an
    original user id, nor a query that is not released.
    """


class QueryveilWarning(UserWarning):
    """Something that goes on, and that the caller should know of: a risk with its number, a change of meaning."""
