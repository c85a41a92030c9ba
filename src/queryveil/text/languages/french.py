"""French."""

from functools import partial

from queryveil.text.languages import Cues, Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
afin ai alors après as au aucun aussi autre aux avec avez avoir avons ayant c car ce ceci cela celle celles celui ces
cet cette ceux chaque chez ci comme comment d dans de depuis des donc dont du dès elle elles en encore entre est et eu
eux fait hors il ils j je jusque l la laquelle le lequel les lesquels leur leurs lors lui là m ma mais me mes mien moi
moins mon n ne ni nos notre nous on ont ou où par parce pas pendant peu peut plus pour pourquoi puis qu quand que quel
quelle quelles quels qui quoi s sa sans se sera ses si sien son sont sous suis sur t ta te tes toi ton tous tout toute
toutes très tu un une vers voici voilà vos votre vous y à ça étaient était été être
"""
_PEOPLE = """
adresse téléphone tél tel numéro portable email mail contact dr docteur maître avocat médecin dentiste notaire
monsieur madame mr mme avis décès décédé obsèques né née anniversaire divorce mariage épouse mari famille facebook
linkedin copains habite cv recherche trouver
"""
_BEFORE_PLACES = "à au aux en de dans près"
_INSTITUTIONS = """
école collège lycée université clinique hôpital église paroisse fondation musée bibliothèque institut stade rue
place avenue théâtre médiathèque crèche
"""
_PUBLIC_LIFE = """
concert concerts billets billet tournée paroles album chanson film films acteur actrice chanteur chanteuse groupe
biographie citations ministre président maire député joueur maillot
"""
_PHONES = "téléphone telephone tél tel portable numéro mobile fax appeler appelé appelle gsm joindre whatsapp"

LANGUAGE = Language(
    id="fr",
    label="French",
    stop_words=frozenset(_STOP_WORDS.split()),
    countries=(
        "FR",
        "BE",
        "LU",
    ),
    stem=partial(snowball, algorithm="french"),
    conjunctions=(
        "et",
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
