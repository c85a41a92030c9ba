"""English.

The stop words are few on purpose: the long public lists have words such as `computer` and `home`, which matter in
queries. Words that only end a noun phrase are apart from them, because affinity must not drop those.
"""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a about after all also am an and any are as at be been before being between but by can could did do does doing
during each else for from had has have having he her here hers him his how i if in into is it its just may me might
more most must my no nor not of off on once or our ours out over own shall she should so some such than that the
their theirs them then there these they this those through to too under until up us very was we were what when where
which while who whom whose why will with would you your yours
"""
_PHRASE_ENDS = """
& above across against along among and around behind below beneath beside besides beyond d despite down except how's
let's ll n near onto per re s since t than though throughout toward towards unless unlike upon v ve versus via vs
what's when whether who's within without
"""
_BEFORE_VERBS = """
can can't cannot could did didn't do does doesn't don't he i let may might must she should that they to we what
which who will won't would you
"""
_DETERMINERS = "a an her his its my our some the their this your"
_PEOPLE = """
address addresses phone telephone cell number numbers email e-mail contact dr doctor md dds dentist attorney lawyer
realtor judge officer mr mrs ms miss jr sr ii iii obituary obituaries death died funeral grave born birth birthday age
divorce divorced arrest arrested criminal court record records marriage married wedding engaged wife husband family
genealogy facebook myspace linkedin twitter find people person search home house lives live living resume zip
"""
_BEFORE_PLACES = "in of from near at around"
_INSTITUTIONS = """
university college school elementary middle high academy institute hospital clinic church chapel cathedral parish
synagogue abbey library museum foundation airport cemetery stadium arena theater theatre auditorium memorial hotel
"""
_PUBLIC_LIFE = """
concert concerts ticket tickets tour tours lyrics album albums song songs movie movies film films actor actress singer
band biography bio quotes wallpaper wallpapers poster posters senator governor president congressman congresswoman mayor
autograph autographs fansite filmography discography
"""
_PHONES = "phone phones tel telephone call cell cellphone mobile fax number whatsapp"
_NETWORKS = "ip ips ipv4 ipv6 address addresses ping whois traceroute tracert dns server host hack port"
_VERSIONS = "version ver v release firmware build kernel driver drivers update patch bios"

LANGUAGE = Language(
    id="en",
    label="English",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("GB", "US", "IE", "MT"),
    stem=partial(snowball, algorithm="english"),
    phrase_ends=frozenset(_PHRASE_ENDS.split()),
    before_verbs=frozenset(_BEFORE_VERBS.split()),
    determiners=frozenset(_DETERMINERS.split()),
    conjunctions=("and", "&", "or"),
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
        networks=frozenset(_NETWORKS.split()),
        versions=frozenset(_VERSIONS.split()),
    ),
)
