"""Words with little meaning of their own.

Short on purpose: the long public lists have words such as `computer` and `home`, which matter in queries.
"""

_WORDS = """
a about after all also am an and any are as at be been before being between but by can could did do does doing
during each else for from had has have having he her here hers him his how i if in into is it its just may me might
more most must my no nor not of off on once or our ours out over own shall she should so some such than that the
their theirs them then there these they this those through to too under until up us very was we were what when where
which while who whom whose why will with would you your yours
"""

STOP_WORDS = frozenset(_WORDS.split())
