"""Portuguese."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
a ainda algo algum alguma alguns além ante antes ao aos apenas aquela aquelas aquele aqueles aquilo as até cada com
como contra da das de dela delas dele deles depois desde desta deste do dos e ela elas ele eles em entre era eram essa
essas esse esses esta estas estava este estes estou está estão eu foi foram há isso isto já lhe lhes lá mais mas me
mesma mesmo meu meus mim minha minhas muita muito na nas nem nessa nesta neste no nos nossa nossas nosso nossos num
numa não nós o onde os ou outra outro para pela pelas pelo pelos per perante pode por porque porquê quais qual quando
quanto que quem quê se sem ser será seu seus si sido sob sobre sua suas são só também te tem tendo ter teu teus tinha
toda todas todo todos tu tua tuas tudo tão têm um uma umas uns você vocês vos vosso à às é
"""
_PEOPLE = """
morada endereço telefone número telemóvel celular email contacto contato dr dra doutor doutora advogado advogada
médico dentista notário senhor senhora óbito faleceu falecido funeral nascido nascida aniversário divórcio casamento
esposa marido família facebook linkedin mora currículo procurar
"""
_BEFORE_PLACES = "em no na de do da perto"
_INSTITUTIONS = """
escola colégio liceu universidade clínica hospital igreja paróquia fundação museu biblioteca estádio rua praça
teatro
"""
_PUBLIC_LIFE = """
concerto concertos bilhetes letra letras álbum canção filme filmes ator atriz cantor cantora banda biografia frases
ministro presidente jogador camisola
"""
_PHONES = "telefone tel telemóvel telemovel celular número fax ligar ligou liga whatsapp"

LANGUAGE = Language(
    id="pt",
    label="Portuguese",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=("PT",),
    stem=partial(snowball, algorithm="portuguese"),
    conjunctions=(
        "e",
        "ou",
    ),
    cues=Cues(
        people=frozenset(_PEOPLE.split()),
        before_places=frozenset(_BEFORE_PLACES.split()),
        institutions=frozenset(_INSTITUTIONS.split()),
        public_life=frozenset(_PUBLIC_LIFE.split()),
        phones=frozenset(_PHONES.split()),
    ),
)
