"""Street addresses as single languages write them.

A *sure* form counts wherever it is. An *unsure* one, such as `marktplatz 3`, counts only before a postal code or a
place. Accents make no difference, because many people type none.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, partial

from queryveil.scrubbing import unspaced
from queryveil.scrubbing.patterns import Finder, Span
from queryveil.text.folding import folded

_NAME = r"[^\W\d_][\w'’.-]*"
_HOUSE = r"(?!(?:19|20)[0-9]{2}(?![0-9]))[0-9]{1,4}(?:(?: ?[a-h]|[/-][0-9]{1,4}| ?bis| ?ter)(?![\w]))?"
"""A house number; a year is none."""
_SMALL = r"[1-9][0-9]{0,2}(?:(?: ?[a-h]|/[0-9]{1,3})(?!\w))?"
_NO = r"(?:n\.?o\.?|n°|nr\.?|núm\.?|num\.?|numer|αρ\.?|br\.?|č\.?|n\.)? ?"
"""The word for a number; in normal form, `nº` and `№` are `no`."""
_FLOOR = (
    r"(?:,? (?:(?:[0-9]{1,2}[oa]?\.? ?(?:[a-d]|izq|izda|dcha|dch|izquierda|derecha|esq|dto|dt|frente|piso|planta"
    r"|etage|stock|og|th|tv|mf)|bajo [a-d]|esc\.? ?[0-9a-d]|m\. ?[0-9]{1,3}|lok\. ?[0-9]{1,3}|apt\.? ?[0-9]{1,4}"
    r"|whg\.? ?[0-9]{1,3}"
    r"|int\.? ?[0-9]{1,3}|bat\.? ?[0-9a-f]|et\. ?[0-9]{1,2}|ap\.? ?[0-9]{1,3}|bl\.? ?[0-9a-z]{1,4}|sc\.? ?[0-9a-f]"
    r"|puerta ?[0-9]{1,3}|pta\.? ?[0-9]{1,3}|piso ?[0-9]{1,2})\.?(?![\w/-]))){0,3}"
)
"""What follows a house number in the house: floor, door, flat."""
_COUNTED = {
    "cs": "dny dní hodin let metrů minut korun kč hvězdičky dílů díl série",
    "de": "sterne jahre jahren tage tagen stunden minuten uhr meter km kilometer euro prozent personen teile",
    "el": "αστέρων αστέρια χρόνια μέρες ώρες λεπτά μέτρα χιλιόμετρα ευρώ άτομα επεισόδια δωμάτια",
    "es": "estrellas años días horas minutos metros km euros personas capítulos etapas partidos temporada dormitorios",
    "fr": "étoiles ans jours heures minutes mètres km euros personnes épisodes saison étapes pièces",
    "it": "stelle anni giorni ore minuti metri km euro persone puntate lezioni tappe stagione lezione cfu crediti",
    "nl": "sterren jaar dagen uur minuten meter km euro personen afleveringen slaapkamers",
    "pl": "gwiazdki gwiazdek lat dni godzin godziny minut metrów km zł złotych osób odcinek odcinki sezon",
    "pt": "estrelas anos dias horas minutos metros km euros pessoas episódios etapas temporada quartos",
    "ro": "stele ani zile ore minute metri km lei euro persoane episoade camere",
}
"""What is counted: a number before it is no house number."""
_NO_STREETS = {
    "cs": "linka|škola|kapitola|sezóna|verze|povídka|hodina",
    "de": "bundesstraße",
    "el": "γραμμή|ταινία|σχολή|ώρα|σελίδα|έκδοση|τάξη|ομάδα|κατηγορία|πίστα|σεζόν|ημέρα|εβδομάδα",
    "it": "via col vento|via da qui|via libera|strada facendo"
    "|corso (?:inglese|sicurezza|italiano|spagnolo|online|base|haccp)",
    "pl": "godzina|szkoła|linia|droga|zima|klasa|strona|wersja|część|seria|gra|liga|zmiana|brama|runda|grupa|strefa"
    "|temperatura|minuta",
}
"""What only looks like a street: it counts before a postal code or a place, and never without the word for a street."""


def _names(most: int) -> str:
    return rf"(?:{_NAME} ){{1,{most}}}?"


def _kind_first(kinds: str, most: int = 4) -> str:
    """`calle de la rosa 12`."""
    return rf"(?:{kinds})(?: |(?<=[./]))(?:[0-9]{{1,2}}(?:\.|ης|ª|º)? )?(?:{_NAME},? ){{1,{most}}}{_NO}{_HOUSE}"


def _kind_last(kinds: str, most: int = 3) -> str:
    """`kossuth lajos utca 12`."""
    return rf"{_names(most)}(?:{kinds}),? {_NO}{_HOUSE}\.?"


def _number_first(kinds: str) -> str:
    """`12 rue de la paix`."""
    small = "de|du|des|la|le|les|l'|d'|saint|sainte|docteur|dr|général|jean|jules"
    return rf"{_HOUSE},? (?:{kinds}) (?:(?:{small}) ?){{0,4}}{_NAME}"


def _glued(ends: str) -> str:
    """`lindenstraße 12`; also `frankfurter straße 12`."""
    return rf"(?:[^\W\d_][\w-]{{1,}}(?:{ends})|{_names(2)}(?:{ends})) ?{_HOUSE}"


_BEFORE_NAMES = r"(?:(?:burgemeester|burg\.|professor|prof\.|dokter|dr\.|pastoor|meester|mr\.) )?(?:van (?:der?|den) )?"
_SURE = {
    "bg": [_kind_first(r"ул\.?|улица|бул\.?|булевард|ж\.?к\.?|площад|пл\.")],
    "cs": [_kind_first(r"ulice|ul\.|náměstí|nám\.|třída|tř\."), _kind_last(r"náměstí|nám\.|třída", 2)],
    "da": [_glued(r"vej|vejen|gade|gaden|allé|stræde|plads|boulevard")],
    "de": [
        _glued(r"straße|strasse|str\.|str|gasse|allee|chaussee"),
        rf"straße (?:des|der) (?:[0-9]{{1,2}}\. )?{_NAME} {_HOUSE}",
        r"postfach [0-9 ]{2,8}[0-9]",
    ],
    "el": [_kind_first(r"οδός|οδού|οδό|οδ\.|λεωφόρος|λεωφόρου|λεωφ\.?|λ\.|πλατεία|πλ\.", 3)],
    "es": [
        _kind_first(
            r"calle|c/|c\.|cl\.?|avenida|avda\.?|av\.?|plaza|pza\.?|plza\.?|paseo|pº|camino|travesía|ronda|carretera|ctra\.?"
            r"|glorieta|urbanización|urb\.?|callejón|rambla|cuesta|pasaje|alameda|vía|cañada|acceso",
            6,
        )
    ],
    "et": [_kind_last(r"tänav|tn\.?|maantee|mnt\.?|puiestee|pst\.?", 2)],
    "fi": [_glued(r"katu|kuja|polku|väylä|kaari|raitti|bulevardi")],
    "fr": [
        _number_first(
            r"rue|avenue|av\.?|boulevard|bd\.?|blvd\.?|chemin|ch\.|impasse|imp\.|allée|allee|faubourg|sentier"
        ),
        r"bp [0-9]{2,5}(?= [0-9]{5})",
    ],
    "hr": [_kind_first(r"ulica|ul\.|avenija"), _kind_last(r"ulica|cesta|put", 2)],
    "hu": [_kind_last(r"utca|u\.|út|útja|körút|krt\.?|tér|tere|köz|sétány", 3)],
    "it": [
        _kind_first(
            r"via|viale|v\.le|corso|vicolo|piazza|p\.zza|piazzale|p\.le|largo|strada|contrada|borgo|rotonda|lungomare|salita",
            5,
        )
    ],
    "lt": [_kind_last(r"gatvė|gatvės|g\.|prospektas|pr\.|alėja|al\.", 2)],
    "lv": [_kind_last(r"iela|ielā|bulvāris|prospekts", 2)],
    "nl": [
        _BEFORE_NAMES + _glued(r"straat|laan|gracht|kade|singel|steeg|dreef|boulevard|hof|ring"),
    ],
    "pl": [_kind_first(r"ul\.?|ulica|ulicy|ulicę|al\.?|aleja|alei|aleje|os\.?|osiedle|osiedlu|plac|pl\.", 4)],
    "pt": [_kind_first(r"rua|r\.|avenida|av\.?|travessa|praça|praceta|largo|estrada|alameda|calçada|rotunda", 6)],
    "ro": [
        _kind_first(
            r"strada|str\.?|bulevardul|b-dul|bd\.?|calea|aleea|șoseaua|soseaua|șos\.|sos\.|piața|intrarea|drumul|splaiul",
            4,
        )
    ],
    "sk": [_kind_first(r"ulica|ul\.|námestie|nám\.|trieda"), _kind_last(r"ulica|ul\.", 2)],
    "sl": [_kind_first(r"ulica|trg"), _kind_last(r"ulica|cesta|ulici|cesti|pot", 2)],
    "sv": [_glued(r"gatan|vägen|gränd|gata|väg|allén|stigen|torget|backen")],
}
_UNSURE = {
    "de": [
        _glued(r"weg|platz|ring|hof|damm|ufer|steig|park|markt|berg|graben|wall|gasse|feld|winkel|zeile|promenade"),
        rf"(?:am|an der|an den|auf der|auf dem|im|in der|in den|zum|zur|unter den|hinter der|alte|alter|neue|bei der) "
        rf"(?:{_NAME} ){{1,2}}{_HOUSE}",
    ],
    "fi": [_glued(r"tie|tori|ranta|mäki")],
    "fr": [
        _number_first(
            r"place|pl\.?|cours|route|rte|passage|quai|square|sq\.|résidence|res\.|lotissement|hameau|villa|cité"
        ),
    ],
    "nl": [_glued(r"weg|plein|dijk|hof|pad|baan|markt|park|plantsoen|straatweg")],
}
_ALONE = {
    "cs": rf"(?:{_NAME} ){{0,2}}[^\W\d_]+(?:ova|ova|ská|cká|ní|á) {_SMALL}",
    "el": rf"(?:{_NAME} ){{0,2}}[^\W\d_]+(?:ου|ού|ης|ής|ων|ών|ας|άς|ους|η|ή) {_SMALL}",
    "hr": rf"(?:{_NAME} ){{0,2}}[^\W\d_]+(?:ska|ova|eva|čka|a) {_SMALL}",
    "pl": rf"(?:{_NAME} ){{0,2}}[^\W\d_]+(?:ska|cka|owa|na|ta|ra|ła|wa|ga|cha|ego|iego|ej|iej|ki|icza|i) {_SMALL}",
    "sk": rf"(?:{_NAME} ){{0,2}}[^\W\d_]+(?:ova|ská|cká|ná|á) {_SMALL}",
}
"""What is a street if the whole query is that and a place: the name of a street without the word for one."""
HOUSES = "座号號弄栋幢"
"""What follows the number of a house in Chinese."""
_HAN = r"\u4e00-\u9fff々〇ヶ"
_UNSPACED = {
    "zh": re.compile(
        rf"[{_HAN}]{{1,16}}?(?:路|街|大道|道|巷|胡同|弄|里|村|园|苑|小区|广场)[{_HAN}]{{0,4}}? ?"
        rf"(?:第?[0-9]{{1,5}}|[a-z](?=座)|[一二三四五六七八九十百]{{1,4}})"
        r" ?(?:-[0-9]{1,4} ?)?(?:座|号楼|号院|号(?![线口桥机店])|號|弄|栋|幢)"
        rf"(?:[a-z{_HAN}]{{0,8}}? ?[0-9]{{1,4}} ?(?:号楼|号|弄|栋|幢|单元|室|楼|层)|[0-9]{{3,4}}(?![0-9]))*"
    ),
    "ja": re.compile(
        rf"(?:〒? ?[0-9]{{3}}-[0-9]{{4}} ?)?[{_HAN}ぁ-んァ-ヴー]{{2,24}}? ?"
        rf"(?:[0-9]{{1,2}} ?丁目(?: ?[0-9]{{1,4}}(?: ?番地?| ?-)?(?:の? ?[0-9]{{1,4}} ?号?)?)?"
        rf"|(?<!第)[0-9]{{1,5}} ?番(?![線組星目])地?(?: ?の? ?[0-9]{{1,4}} ?号?)?"
        rf"|(?<=[{_HAN}ぁ-んァ-ヴー ])[0-9]{{1,2}}-[0-9]{{1,3}}-[0-9]{{1,4}})"
    ),
    "ko": re.compile(
        r"[가-힣0-9 ]{0,20}?[가-힣]{1,8}(?:로|길|동) ?[0-9]{1,5}(?:-[0-9]{1,4})?(?:번지|호)?(?![0-9가-힣])"
    ),
}
_POSTAL = (
    r"(?:[0-9]{5,6}|[0-9]{3} [0-9]{2}|[0-9]{2}-[0-9]{3}|[0-9]{4} ?[a-z]{2}|[a-z]{1,2}-[0-9]{4,5}"
    r"|[0-9]{4}(?:-[0-9]{3})?)(?![\w-])"
)
_THEN_POSTAL = re.compile(rf",? (?:τκ |τ\.κ\. |cp |plz |cod )?{_POSTAL}")
_NEVER = r"(?!)"
_MORE = re.compile(rf" {_NAME}")
PlaceEnd = Callable[[str, int], int | None]
"""Where the place that begins at a point of a text ends, if one does."""


def _streets(text: str, *, language: str, place_end: PlaceEnd) -> Iterator[Span]:
    text = folded(text)
    alone = _alone(language)
    found = alone.match(text) if alone is not None else None
    if found is not None and not is_other(text, found, language):
        if _placed(text, found.end(), place_end) == len(text):
            yield 0, len(text)
        elif (postal := _THEN_POSTAL.match(text, found.end())) is not None:
            yield 0, postal.end()
    for pattern, sure in _patterns(language):
        for found in pattern.finditer(text):
            end = found.end()
            placed = _placed(text, end, place_end)
            # A street whose number comes first may have more words before the place.
            for more in _MORE.finditer(text, end) if placed is None and not text[end - 1].isdigit() else ():
                if more.start() != end or placed is not None:
                    break
                end = more.end()
                placed = _placed(text, end, place_end)
            if placed is not None:
                yield found.start(), placed
            elif sure and not is_other(text, found, language):
                yield found.span()


def is_other(text: str, street: re.Match[str], language: str) -> bool:
    """Whether what has the form of a street in a text is something else, if neither postal code nor place follows."""
    if _counted(language).match(folded(text), street.end()) is not None:
        return True
    return _no_street(language).search(folded(street[0])) is not None


def _placed(text: str, at: int, place_end: PlaceEnd) -> int | None:
    """Where the postal code, the place or both end that follow."""
    postal = _THEN_POSTAL.match(text, at)
    end = postal.end() if postal is not None else at
    placed = place_end(text, end)
    return placed if placed is not None else end if postal is not None else None


@cache
def _alone(language: str) -> re.Pattern[str] | None:
    form = folded(_ALONE.get(language, ""))
    return re.compile(rf"{form}(?![\w/-]){_FLOOR}") if form else None


@cache
def _counted(language: str) -> re.Pattern[str]:
    return re.compile(rf" (?:{folded(_COUNTED.get(language, _NEVER)).replace(' ', '|')})(?!\w)")


@cache
def _no_street(language: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{folded(_NO_STREETS.get(language, _NEVER))})(?!\w)")


@cache
def _patterns(language: str) -> list[tuple[re.Pattern[str], bool]]:
    made = [(form, True) for form in _SURE.get(language, [])] + [(form, False) for form in _UNSURE.get(language, [])]
    return [(re.compile(rf"(?<![\w.,/-])(?:{folded(form)})(?![\w/-]){_FLOOR}"), sure) for form, sure in made]


def _unspaced(text: str, *, language: str) -> Iterator[Span]:
    for found in _UNSPACED[language].finditer(text):
        yield unspaced.with_name(text, found.span(), language)


def streets(language: str, place_end: PlaceEnd) -> Finder:
    """Street addresses of a language.

    Args:
        language: The code of the language.
        place_end: Where a place ends.
    """
    if language in _UNSPACED:
        return partial(_unspaced, language=language)
    return partial(_streets, language=language, place_end=place_end)
