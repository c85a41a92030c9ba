"""Scrubbing by language: recall on data that another package makes, and false hits on numbers of nobody.

Names, streets, ids and accounts come from Faker; phone numbers are valid ones with digits at random, in one piece, in
groups at random, or international. The lists of names were made from Faker's, so names are taken from the synthetic
logs too, which have lists of their own. Rules were corrected once after a first look at what was missed: kinds of
streets, numbers of nobody, and what looks like a phone number in an address.

    pip install faker==40.54.0
    python -m benchmarks.scrub_languages 2000
"""

import importlib
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PLACES = {
    "de": ("de_DE", "DE"), "fr": ("fr_FR", "FR"), "es": ("es_ES", "ES"), "it": ("it_IT", "IT"), "nl": ("nl_NL", "NL"),
    "pl": ("pl_PL", "PL"), "pt": ("pt_PT", "PT"), "el": ("el_GR", "GR"), "sv": ("sv_SE", "SE"), "fi": ("fi_FI", "FI"),
    "da": ("da_DK", "DK"), "cs": ("cs_CZ", "CZ"), "ro": ("ro_RO", "RO"), "hu": ("hu_HU", "HU"), "bg": ("bg_BG", "BG"),
    "zh": ("zh_CN", "CN"), "ja": ("ja_JP", "JP"),
}  # fmt: skip
TOWNS = {
    "de": "Wuppertal Böblingen Pirna", "fr": "Angoulême Vitré Sète", "es": "Cuenca Almansa Motril",
    "it": "Lecce Sondrio Faenza",
    "nl": "Zwolle Venlo Heerlen", "pl": "Sanok Ełk Kutno", "pt": "Viseu Faro Tomar", "el": "Καβάλα Βέροια Σπάρτη",
    "sv": "Skövde Falun Visby", "fi": "Kuopio Rauma Imatra", "da": "Vejle Holbæk Skive", "cs": "Kladno Zlín Písek",
    "ro": "Bacău Deva Zalău", "hu": "Győr Baja Makó", "bg": "Плевен Видин Шумен",
    "zh": "洛阳 宜昌 惠州", "ja": "姫路市 松江 久留米",
}  # fmt: skip
EACH = 300
KINDS = ("phone", "national_id", "iban", "address", "name_place")


def _grouped(digits: str, draw: random.Random) -> str:
    """Digits in one piece, or in groups of two to four."""
    groups = []
    while len(digits) > 4 and draw.random() > 0.1:
        cut = draw.randint(2, 4)
        groups.append(digits[:cut])
        digits = digits[cut:]
    return draw.choice(" -./ ").join([*groups, digits])


def planted(language: str, kind: str, draw: random.Random) -> Iterator[str]:
    """Queries with something of a kind."""
    faker = importlib.import_module("faker")
    locale, country = PLACES[language]
    provider = {"national_id": "ssn", "address": "address"}.get(kind)
    if provider is not None:  # without one of its own, Faker makes American data
        own = importlib.import_module(f"faker.providers.{provider}.{locale}").Provider
        if kind == "national_id" and "ssn" not in vars(own):
            raise AttributeError
        if kind == "address" and not hasattr(own, "street_address_formats"):
            raise AttributeError
    made = faker.Faker(locale)
    made.seed_instance(draw.randrange(1 << 30))
    import phonenumbers as phones

    for _ in range(EACH):
        if kind == "phone":
            types = phones.PhoneNumberType
            number = phones.example_number_for_type(country, draw.choice((types.MOBILE, types.FIXED_LINE)))
            while True:
                digits = str(number.national_number)
                digits = digits[:-5] + "".join(draw.choice("0123456789") for _ in range(5))
                other = phones.PhoneNumber(
                    number.country_code, int(digits), italian_leading_zero=number.italian_leading_zero
                )
                if phones.is_valid_number(other):
                    break
            styles = phones.PhoneNumberFormat
            text = phones.format_number(other, draw.choice((styles.NATIONAL, styles.NATIONAL, styles.INTERNATIONAL)))
            if "+" not in text:
                text = _grouped(re.sub("[^0-9]", "", text), draw)
        elif kind == "national_id":
            text = made.ssn()
        elif kind == "iban":
            text = made.iban()
            text = " ".join(text[n : n + 4] for n in range(0, len(text), 4)) if draw.random() < 0.5 else text
        elif kind == "address":
            street, city = made.street_address().replace("\n", " "), draw.choice(TOWNS[language].split())
            text = f"{city}{street}" if language in ("zh", "ja") else f"{street} {made.postcode()} {city}"
        else:
            town = draw.choice(TOWNS[language].split())
            text = f"{made.first_name()} {made.last_name()} {town}"
            if language in ("zh", "ja"):
                text = f"{made.last_name()}{made.first_name()} {town}"
        yield text


NUMBERS = ("iphone {0}", "{0}", "isbn 978{0:010d}", "{0} euro", "{1}.{2:03d} km", "ean 4{0:012d}", "{1}/{2} r{1}",
           "dhl {0:012d}", "{1} x {2} cm",
           "24.12.20{1:02d}", "bj 19{1:02d} 20{1:02d}", "samsung {1}{2}", "{2}-{1}-{1}")  # fmt: skip
"""Numbers of nobody."""


def main() -> None:
    """Print the tables."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from queryveil.scrubbing import DEFAULT_KINDS, mask, scope_of
    from queryveil.scrubbing import KINDS as ALL
    from queryveil.synth import LANGUAGES, generate
    from queryveil.text import language, normal_form

    users = int(sys.argv[1])
    print(f"| language | {' | '.join(f'`{kind}`' for kind in KINDS)} | numbers of nobody |")
    print("|---" * (len(KINDS) + 2) + "|")
    for code in PLACES:
        draw = random.Random(7)
        scope = scope_of(language(code), None)
        cells = []
        for kind in KINDS:
            try:
                texts = list(planted(code, kind, draw))
            except (AttributeError, ImportError, NotImplementedError):
                cells.append("-")
                continue
            hits = mask(normal_form(pa.array(texts)), DEFAULT_KINDS, scope).hits
            cells.append(f"{100 * (hits >> ALL.index(kind) & 1).mean():.0f} % ({100 * (hits > 0).mean():.0f} %)")
            if "--missed" in sys.argv:
                print(kind, [t for t, h in zip(texts, hits.tolist(), strict=True) if not h][:6], file=sys.stderr)
        other = []
        for _ in range(2000):
            drawn = draw.randrange(10 ** draw.randint(3, 9)), draw.randrange(100), draw.randrange(1000)
            other.append(draw.choice(NUMBERS).format(*drawn))
        hits = mask(normal_form(pa.array(other)), DEFAULT_KINDS, scope).hits
        if "--missed" in sys.argv:
            print("nobody", [t for t, h in zip(other, hits.tolist(), strict=True) if h][:12], file=sys.stderr)
        print(f"| {code} | {' | '.join(cells)} | {100 * (hits > 0).mean():.1f} % |", flush=True)
    print(
        "\n| synthetic log | queries | a second | precision | recall | `phone` | `national_id` | `address` |"
        " `name_place` |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for code in LANGUAGES:
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder) / "log.parquet", users=users, seed=11, language=code, truth=Path(folder) / "truth")
            table = pq.read_table(Path(folder) / "truth/queries.parquet", columns=["query", "sensitive"])
        queries, kinds = table["query"].combine_chunks(), table["sensitive"].to_pylist()
        scope = scope_of(language(code), None)
        mask(queries.slice(0, 1000), DEFAULT_KINDS, scope)
        begin = time.process_time()
        hits = mask(queries, DEFAULT_KINDS, scope).hits
        seconds = time.process_time() - begin
        some = [kind in ("email", "card", "phone", "national_id", "address", "name_place") for kind in kinds]
        right = sum(s and h > 0 for s, h in zip(some, hits.tolist(), strict=True))
        by_kind = []
        for kind in ("phone", "national_id", "address", "name_place"):
            of = [h >> ALL.index(kind) & 1 for k, h in zip(kinds, hits.tolist(), strict=True) if k == kind]
            by_kind.append(f"{100 * sum(of) / max(1, len(of)):.1f} %")
        print(
            f"| {code} | {len(queries):,} | {len(queries) / seconds:,.0f} |"
            f" {100 * right / max(1, (hits > 0).sum()):.1f} % |"
            f" {100 * right / sum(some):.1f} % | {' | '.join(by_kind)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
