"""Personal data with a fixed form: e-mail, web addresses that name a person, IP addresses, cards, accounts, phones.

Every function returns the parts of a text, in normal form, that it finds. None of them ever includes `<` or `>`, so
what is masked stays masked. Repetitions are bounded, so no text takes long.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator

from queryveil.scrubbing.lists import COMMON, FIRST, WORD, lists_of, plain_word
from queryveil.text import language

Span = tuple[int, int]
Finder = Callable[[str], Iterator[Span]]


def _any_of(words: frozenset[str]) -> str:
    return "|".join(map(re.escape, sorted(words)))


_MAIL_HOSTS = (
    "gmail|yahoo|ymail|hotmail|outlook|live|msn|aol|comcast|verizon|att|sbcglobal|bellsouth|cox|charter|earthlink|icloud"
    "|mac|gmx|web|mail|yandex|protonmail|proton"
)
_EMAIL = re.compile(
    r"[^\W_][\w.%+'-]{0,63}(?:@|%40)(?:[\w-]{1,63}(?:\.[\w-]{1,63}){0,6}\.[^\W\d_]{2,24}(?![\w-])|(?:"
    + _MAIL_HOSTS
    + r")(?![\w.-]))"
)


_DOT = r"(?: dot | ?[(\[]dot[)\]] ?)"
_HOST = r"[\w-]{1,63}(?:\.[\w-]{1,63}){0,4}"
_SPELT = re.compile(
    rf"(?<![\w.@-])((?:[\w+-]{{1,40}}{_DOT}){{0,2}}[^\W_][\w.+'-]{{0,63}})(?:"
    rf"( at )[\w-]{{1,63}}(?:{_DOT}[\w-]{{1,63}}){{0,2}}{_DOT}(?:com|net|org|edu|gov|info|biz|uk|ca|de|fr|es|nl|au)"
    rf"|( ?@ ?){_HOST}(?:{_DOT}|\.)[^\W\d_]{{2,24}}"
    rf"| ?[(\[]at[)\]] ?{_HOST}(?:{_DOT}[\w-]{{1,63}}){{0,2}}(?:{_DOT}|\.)[^\W\d_]{{2,24}})(?![\w-])"
)


def _is_person(word: str) -> bool:
    kind = lists_of().words.get(plain_word(word), 0)
    return bool(kind & FIRST) and (not kind & WORD or bool(kind & COMMON))


def emails(text: str) -> Iterator[Span]:
    """`jane@example.com`, and `jane@gmail` if the host is well known; also with `%40`, `(at)` and spaces.

    `shop at example dot com` and `shop @ example.com` say where, not who. There the name must not be an ordinary word,
    or it must be or follow a first name that is not a word or is a common name.
    """
    for found in _EMAIL.finditer(text):
        yield found.span()
    for found in _SPELT.finditer(text):
        start = found.start()
        if found[2] or found[3]:
            before = text[:start].rstrip(" ").rpartition(" ")[2]
            if _is_person(before):
                start = text.rindex(before, 0, start)
            elif lists_of().words.get(plain_word(found[1]), 0) & WORD and not _is_person(found[1]):
                continue
        yield start, found.end()


_SCHEME = r"[a-z][a-z0-9+.-]{0,9}://"
_CREDENTIALS = re.compile(
    rf"(?<![\w/])(?:{_SCHEME}[^\s<>/@]{{1,100}}|(?!mailto:)[\w.+-]{{1,64}}:[^\s<>/@:]{{1,64}})@[\w-][^\s<>]*"
)
_ADDRESS = rf"(?<![\w/])(?:{_SCHEME})?[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,6}}(?::[0-9]{{1,5}})?"
_NAME = r"@?[\w][\w.%+-]*"
_TAIL = r"[^\s<>]*"
_HOME = re.compile(_ADDRESS + r"/(?:[^\s<>]{0,200}/)?~" + _NAME + _TAIL)
PROFILE_SITES = (
    r"(?:facebook|myspace|twitter|instagram|pinterest|xanga|tiktok|github|vk|snapchat|threads|bebo|orkut|plurk)\.com/",
    r"(?:\bx\.com|t\.me|threads\.net)/",
    r"youtube\.com/(?:user/|c/|channel/|@)|linkedin\.com/(?:in|pub)/|reddit\.com/(?:user|u)/",
    r"flickr\.com/(?:photos|people)/|snapchat\.com/add/",
)
"""Sites whose address continues with the name of a user."""
_PROFILE = re.compile(
    rf"(?<![\w/])(?:{_SCHEME})?(?:[\w-]{{1,63}}\.){{0,3}}(?:{'|'.join(PROFILE_SITES)})({_NAME}){_TAIL}"
)
MEMBER = "(?:users?|u|people|profiles?|members?|accounts?)"
"""Parts of a path that the name of a user follows."""
_MEMBER = re.compile(_ADDRESS + rf"/(?:[^\s<>]{{0,200}}/)?{MEMBER}/{_NAME}{_TAIL}")
NAMING = (
    "(?:user|user_?(?:name|id)|login|logon|e?mail|nick|nick_?name|screen_?name|first_?name|last_?name|full_?name"
    "|passw(?:or)?d|pwd)"
)
"""Parameters of a clicked address that name a user. Fewer than in a query: `name` and `sid` are often pages."""
_NAMED = re.compile(rf"[?&;#]{NAMING}=(?!&|;|#|$)")
_FILES = re.compile(r"\.(?:png|jpe?g|gif|webp|svg|ico|css|m?js|json|map|html?|php|aspx?|pdf|txt|zip|mp[34])$")
_PARAMETER = re.compile(
    _ADDRESS + r"[^\s<>?]{0,200}\?(?:[^\s<>]{0,300}[&;])?"
    r"(?:user|username|user_?id|uid|login|logon|e?mail|account|acct|member|nick|name|passw(?:or)?d|pass|pwd|token|session_?id"
    r"|sid)=[^\s<>&;]+" + _TAIL
)
_PAGES = """
login signup register help about home search watch explore groups events pages marketplace settings privacy terms
policies careers jobs business developers download apps games music videos photos index index.php index.html people pg
profile.php hashtag intent share sharer sharer.php login.php features pricing
"""
_NO_NAMES = frozenset(_PAGES.split())


def urls(text: str) -> Iterator[Span]:
    """Web addresses with credentials, a user's home (`/~jane`), a profile, or a parameter that names a user."""
    if "@" in text:
        for found in _CREDENTIALS.finditer(text):
            yield found.span()
    if "/" in text:
        for found in _PROFILE.finditer(text):
            if found[1] not in _NO_NAMES:
                yield found.span()
        for pattern in (_HOME, _MEMBER):
            for found in pattern.finditer(text):
                yield found.span()
    if "=" in text:
        for found in _PARAMETER.finditer(text):
            yield found.span()


def names_user(url: str) -> bool:
    """Whether a clicked address, in normal form, has credentials, a user's home, a profile, or names a user."""
    return _NAMED.search(url) is not None or any(
        pattern is not _PROFILE or found[1] not in _NO_NAMES
        for pattern in (_CREDENTIALS, _HOME, _PROFILE, _MEMBER)
        for found in pattern.finditer(url)
    )


def has_email(url: str) -> bool:
    """Whether a clicked address holds an e-mail address; `photo@2x.png` is a file."""
    return any(_FILES.search(found[0]) is None for found in _EMAIL.finditer(url))


_VERSION = re.compile(rf"(?<!\w)(?:{_any_of(language().cues.versions)}) ?$")
_NET = re.compile(rf"(?<!\w)(?:{_any_of(language().cues.networks)})(?!\w)")
_LAST_WORD = re.compile(r"(?<![^ ])([a-z][a-z0-9+.-]*) $")
_HIGHEST_VERSION = 19
_IP_4 = re.compile(r"(?<![\w.-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[\w])")
_IP_6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?![\w:])")


def ips(text: str) -> Iterator[Span]:
    """Public IP addresses, without those of home routers and examples, and without version numbers.

    A version number follows a word such as `version`; or it begins with a small number and follows a word that is not a
    stop word, as in `firefox 3.0.0.1`, and the query has no word about networks (`ip`, `ping`).
    """
    net = None
    for pattern in (_IP_4, _IP_6):
        for found in pattern.finditer(text):
            try:
                known = ipaddress.ip_address(found[0]).is_global
            except ValueError:
                continue
            if not known or _VERSION.search(text[: found.start()]):
                continue
            behind = _LAST_WORD.search(text[: found.start()])
            if behind and pattern is _IP_4 and int(found[0].partition(".")[0]) <= _HIGHEST_VERSION:
                net = _NET.search(text) is not None if net is None else net
                if not net and behind[1] not in language().stop_words:
                    continue
            yield found.span()


_CARD_SHAPES = (
    re.compile(r"(?<![0-9])(?=([0-9]{4}([ .-]?)[0-9]{4}\2[0-9]{4}\2[0-9]{4})(?![0-9]))"),
    re.compile(r"(?<![0-9])(?=([0-9]{4}([ .-]?)[0-9]{6}\2[0-9]{4,5})(?![0-9]))"),
    re.compile(r"(?<![0-9])(?=([0-9]{14,19})(?![0-9]))"),
    # Any groups of two or more digits: all groups in a row, or all but the last, such as the month of expiry.
    re.compile(r"(?<![0-9])(?<![0-9][ .-])(?=([0-9]{2,13}(?:[ .-][0-9]{2,13}){1,8})(?![0-9]|[ .-][0-9]))"),
    re.compile(r"(?<![0-9])(?<![0-9][ .-])(?=([0-9]{2,13}(?:[ .-][0-9]{2,13}){1,8})[ .-][0-9]+(?![0-9]|[ .-][0-9]))"),
)
_BRANDS = re.compile(
    r"4(?:[0-9]{15}|[0-9]{18})|(?:5[1-5][0-9]{2}|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12,15}"
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2}|62[0-9]{2})[0-9]{12,15}"
)


def cards(text: str) -> Iterator[Span]:
    """Payment cards: the beginning and length of a brand, and Luhn's check digit, anywhere in the text."""
    for shape in _CARD_SHAPES:
        for found in shape.finditer(text):
            number = re.sub("[^0-9]", "", found[1])
            if _BRANDS.fullmatch(number) and _luhn(number):
                yield found.span(1)


def _luhn(number: str) -> bool:
    digits = [int(digit) for digit in reversed(number)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0


_IBAN_HEAD = re.compile(r"(?<![a-z0-9])[a-z]{2}[0-9]{2}(?=[ -]?[a-z0-9])")
_IBAN_REST = re.compile(r"(?:[ -]?[a-z0-9]){11,30}")


def ibans(text: str) -> Iterator[Span]:
    """Bank accounts by their international number, in one piece or in groups, with the right check digits."""
    from stdnum import iban

    for head in _IBAN_HEAD.finditer(text):
        rest = _IBAN_REST.match(text, head.end())
        if rest is None:
            continue
        # A word after the number looks like a part of it, so every end of a group is tried, the longest first.
        for end in range(rest.end(), head.end() + 10, -1):
            if not text[end : end + 1].isalnum() and iban.is_valid(text[head.start() : end]):
                yield head.start(), end
                break


_CALLS = re.compile(rf"(?<!\w)(?:{_any_of(language().cues.phones)})(?!\w)")
_AMERICAN = re.compile(
    r"(?<![0-9a-z])(?:\+?1[ .-]?)?(\()?([2-9][0-8][0-9])(?(1)\) ?|([ .-]?))([2-9][0-9]{2})([ .-]?)([0-9]{4})"
    r"(?![0-9a-z]|[.-][0-9])"
)
_NOBODY = frozenset(("800", "833", "844", "855", "866", "877", "888", "900"))
_LOCAL = re.compile(r"(?<![0-9.-])[2-9][0-9]{2}[ .-][0-9]{4}(?![0-9]|[.-][0-9])")
_FOREIGN = re.compile(r"(?<![0-9a-z])(?:\+|00)[1-9][0-9 ().-]{5,18}[0-9](?![0-9])")
_NATIONAL = re.compile(
    r"(?<![0-9.+-])(?:\(?0[1-9][0-9]{1,4}\)?[ /.-][0-9][0-9 .-]{3,12}[0-9]|0[1-9](?:[ .-][0-9]{2}){4})(?![0-9])"
)
_BARE = re.compile(r"(?<![0-9.+-])0[1-9][0-9]{7,10}(?![0-9])")
_COUNTRIES = ("GB", "FR", "DE", "IT", "NL", "BE", "AT", "CH", "SE", "IE", "AU")


def phones(text: str) -> Iterator[Span]:
    """Phone numbers.

    North American ones in groups (`212-555-0123`, not toll-free ones), or without groups or with spaces if the area
    code is in use; international ones after `+` or `00`; national ones of some countries, which begin with 0, in
    groups. A shorter number, or one without groups, counts next to a word such as `phone`.
    """
    called = _CALLS.search(text) is not None
    for found in _AMERICAN.finditer(text):
        bracket, area, first, exchange, second, last = found.groups()
        if area in _NOBODY:
            continue
        if called or bracket or (first in ("-", ".") and second in ("-", ".")) or _valid(area + exchange + last, "US"):
            yield found.span()
    if called:
        for found in _LOCAL.finditer(text):
            yield found.span()
    yield from international_phones(text)
    for pattern in (_NATIONAL, *([_BARE] if called else [])):
        for found in pattern.finditer(text):
            if any(_valid(found[0], country) for country in _COUNTRIES):
                yield found.span()


def international_phones(text: str) -> Iterator[Span]:
    """Phone numbers after `+` or `00`, of any country."""
    if "+" in text or "00" in text:
        for found in _FOREIGN.finditer(text):
            # Another number after it looks like a part of it.
            end = found.end()
            while end > found.start():
                number = text[found.start() : end]
                if _valid("+" + number.removeprefix("00") if number.startswith("00") else number, None):
                    yield found.start(), end
                    break
                end = max(text.rfind(sign, found.start(), end) for sign in " .-")


def _valid(number: str, country: str | None) -> bool:
    import phonenumbers

    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, country)))
    except phonenumbers.NumberParseException:
        return False
