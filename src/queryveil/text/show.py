"""Text of a log, names of files and numbers, in a form for people."""


def printable(text: str) -> str:
    """Text without characters that could control a terminal or break a document."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def percent(value: float) -> str:
    """A share in per cent, such as `14.8 %`. Only nothing is `0.0 %`, and only everything is `100.0 %`."""
    value = round(value, 12)  # a sum of floats may miss 0 or 1 by less than that
    if 0 < abs(value) < 0.001:
        return "< 0.1 %" if value > 0 else "> -0.1 %"
    if 0.999 < value < 1:
        return "> 99.9 %"
    return f"{100 * value:.1f} %"
