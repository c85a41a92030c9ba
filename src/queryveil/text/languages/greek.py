"""Greek."""

from functools import partial

from queryveil.text.languages import Language
from queryveil.text.stems import snowball

_STOP_WORDS = """
ένα έναν ένας έχει έχεις έχετε έχουμε έχουν έχω ή ήμουν ήσαν ήταν αλλά αν αντί από αυτά αυτές αυτή αυτής αυτοί αυτού
αυτούς αυτό αυτός αυτών για γιατί δεν εάν είμαι είναι είσαι είστε είχα είχε εγώ εδώ εκεί εκείνη εκείνο εκείνος εμάς
εμείς ενώ εσείς εσύ η θα κάθε κάποιος κάτι και κατά κι μέσα μέχρι μία μα μας με μετά μη μην μια μου να ο οι ούτε πάνω
παρά περί πια πιο ποια ποιο ποιος πολύ που πού πριν προς πως πόσο πότε πώς σαν σας σε σου στα στη στην στης στις στο
στον στου στους τα τη την της τι τις το τον του τους των τότε ως όμως όπου όπως ός όσο όταν ότι όχι
"""

LANGUAGE = Language(
    id="el",
    label="Greek",
    stop_words=frozenset(_STOP_WORDS.split()),
    scripts=("greek",),
    countries=(
        "GR",
        "CY",
    ),
    stem=partial(snowball, algorithm="greek"),
    conjunctions=(
        "και",
        "ή",
    ),
)
