"""Spanish."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a al algo alguna algunas alguno algunos ante antes aquel aquella aquello aquellos así aun aunque bajo cada como con
contra cual cuando cuanto cuál cuándo cuánto cómo de del desde donde dos durante dónde e el ella ellas ellos en entre
era eran es esa esas ese eso esos esta estaba estar estas este esto estos estoy está están fue fueron ha había han has
hasta hay he la las le les lo los me mi mientras mis mucho muy más mí nada ni no nos nosotros nuestra nuestras nuestro
nuestros o os otra otras otro otros para pero poco por porque que quien quienes quién qué se sea según ser será si
sido sin sobre sois somos son soy su sus suya suyo sí también tan tanto te ti tiene tienen toda todas todo todos tu
tus tuya tuyo tú un una unas uno unos usted ustedes vosotros vuestra vuestro y ya yo él
"""
_PEOPLE = """
dirección domicilio teléfono telefono número móvil email correo contacto dr doctor doctora abogado abogada médico
dentista notario señor señora don doña esquela fallecido fallecida murió entierro nacido nacida cumpleaños divorcio
boda casado casada esposa marido familia facebook linkedin vive currículum buscar
"""
_BEFORE_PLACES = "en de del cerca"
_INSTITUTIONS = """
colegio instituto escuela universidad clínica hospital iglesia parroquia fundación museo biblioteca estadio calle
plaza avenida teatro residencia guardería ceip ies
"""
_PUBLIC_LIFE = """
concierto conciertos entradas gira letra letras disco canción película películas actor actriz cantante grupo
biografía frases ministro presidente alcalde diputado jugador camiseta
"""
_PHONES = """
teléfono telefono tfno tel tlf telf telef llamada llamado llamó móvil movil número llamar fax celular fijo whatsapp
"""

LANGUAGE = Language(
    id="es",
    label="Spanish",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("ES",),
    stem=partial(snowball, algorithm="spanish"),
    conjunctions=(
        "y",
        "o",
        "e",
        "u",
    ),
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
