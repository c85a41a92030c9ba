"""Normal form and words, read straight off their definition."""

import unicodedata

MASKS = ["url", "email", "card", "iban", "national_id", "phone", "ip", "address", "name_place", "name", "rare"]


def normal_form(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    text = "".join(" " if c.isspace() or unicodedata.category(c) == "Cc" else c for c in text)
    return " ".join(text.split(" ")).strip() if "  " not in text else " ".join(text.split())


def is_inside(c: str) -> bool:
    return c == "&" or unicodedata.category(c)[0] in "LMN"


def words(query: str) -> list[str]:
    result = []
    for mask in MASKS:
        query = query.replace(f"<{mask}>", " ")
    for part in query.split(" "):
        while part and not is_inside(part[0]):
            part = part[1:]
        while part and not is_inside(part[-1]):
            part = part[:-1]
        if part:
            result.append(part)
    return result
