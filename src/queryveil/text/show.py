"""Text of a log, and names of files, for the eyes of a person."""


def printable(text: str) -> str:
    """Text without what could steer a terminal or break a document."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
