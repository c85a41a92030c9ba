"""French."""

from functools import partial

from queryveil.text.languages import Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
afin ai alors après as au aucun aussi autre aux avec avez avoir avons ayant c car ce ceci cela celle celles celui ces
cet cette ceux chaque chez ci comme comment d dans de depuis des donc dont du dès elle elles en encore entre est et eu
eux fait hors il ils j je jusque l la laquelle le lequel les lesquels leur leurs lors lui là m ma mais me mes mien moi
moins mon n ne ni nos notre nous on ont ou où par parce pas pendant peu peut plus pour pourquoi puis qu quand que quel
quelle quelles quels qui quoi s sa sans se sera ses si sien son sont sous suis sur t ta te tes toi ton tous tout toute
toutes très tu un une vers voici voilà vos votre vous y à ça étaient était été être
"""

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
)
