"""Rules about the text of a query: its length, its characters, and lists of texts."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from queryveil.claims import QuerySpelling
from queryveil.claims.lists import read_texts
from queryveil.scrubbing.decisions import Decisions, read_decisions
from queryveil.text import Language
from queryveil.text.words import holding, without_phrases


class TextRule(NamedTuple):
    """A rule about the text of a query."""

    name: str
    measure: Callable[[pa.Array], NDArray[Any]]
    """What is measured of each query."""
    passes: Callable[[NDArray[Any]], NDArray[np.bool_]]
    describe: Callable[[Any], str]
    """What was measured of one query, in words."""
    allowed: Decisions | None = None
    """Decisions that lift the rule."""

    def keeps(self, texts: pa.Array) -> NDArray[np.bool_]:
        """Which queries pass, or need not: they are allowed, or pass without the words that are."""
        kept = self.passes(self.measure(texts))
        if self.allowed is None or kept.all():
            return kept
        failed = np.flatnonzero(~kept)
        some = texts.take(pa.array(failed))
        itself = pc.is_in(some, value_set=self.allowed.allowed_queries).to_numpy(zero_copy_only=False)
        kept[failed] = itself | self.passes(self.measure(without_phrases(some, self.allowed.allowed_words)))
        return kept

    def found(self, text: pa.Array) -> tuple[bool, str]:
        """Whether one query passes, and what was measured, in words."""
        measured, kept = self.measure(text), bool(self.keeps(text)[0])
        lifted = kept and not self.passes(measured)[0]
        return kept, self.describe(measured[0]) + (", and a decision allows that" if lifted else "")


def text_rules(
    spelling: QuerySpelling,
    language: Language,
    *,
    allow_list: Path | None = None,
    block_list: Path | None = None,
    decisions: Path | None = None,
) -> list[TextRule]:
    """The rules that are set.

    Args:
        spelling: What is promised about the spelling of queries.
        language: The language of the queries.
        allow_list: A file of queries; only these pass.
        block_list: A file of words and phrases; queries with one of them do not pass.
        decisions: A file of decisions; what is blocked does not pass, and what is allowed passes rules about spelling.

    Raises:
        QueryveilError: If a list cannot be read.
    """
    rules = []
    decided = None if decisions is None else Decisions.of(read_decisions(decisions))
    if spelling.max_characters is not None:
        rules.append(_at_most(spelling.max_characters, "characters", lambda texts: pc.utf8_length(texts).to_numpy()))
    if spelling.max_terms is not None:
        rules.append(_at_most(spelling.max_terms, "words", lambda texts: language.words(texts).per_query))
    if spelling.no_digits:
        look = partial(pc.match_substring_regex, pattern=r"\p{Nd}")
        rules.append(_either("no digit", look, "it has one", "it has none", expected=False))
    if spelling.no_at:
        look = partial(pc.match_substring, pattern="@")
        rules.append(_either("no @", look, "it has one", "it has none", expected=False))
    rules = [rule._replace(allowed=decided) for rule in rules]
    if allow_list is not None:
        look = partial(pc.is_in, value_set=read_texts(allow_list))
        rules.append(_either("on the allow-list", look, "it is", "it is not", expected=True))
    if block_list is not None:
        look = partial(holding, phrases=read_texts(block_list), language=language)
        rules.append(_either("nothing on the block-list", look, "it has an entry", "it has none", expected=False))
    if decided is not None:
        look = partial(pc.is_in, value_set=decided.blocked_queries)
        rules.append(_either("not blocked by a decision", look, "it is", "it is not", expected=False))
        look = partial(holding, phrases=decided.blocked_words, language=language)
        rules.append(_either("no word blocked by a decision", look, "it has one", "it has none", expected=False))
    return rules


def passing(
    rules: Sequence[TextRule], id_type: pa.DataType
) -> tuple[Callable[[pa.RecordBatch], pa.RecordBatch], pa.Schema]:
    """A function for `Workspace.map` from queries to the query_id of those that pass all rules, and its columns."""
    schema = pa.schema([("query_id", id_type)])

    def find(batch: pa.RecordBatch) -> pa.RecordBatch:
        texts = batch["query"].cast(pa.large_string())
        passed = [rule.keeps(texts) for rule in rules]
        return batch.select(["query_id"]).filter(pa.array(np.logical_and.reduce(passed))).cast(schema)

    return find, schema


def _at_most(most: int, what: str, measure: Callable[[pa.Array], NDArray[Any]]) -> TextRule:
    return TextRule(f"at most {most} {what}", measure, lambda n: n <= most, lambda n: f"it has {n}")


def _either(name: str, look: Callable[[pa.Array], pa.Array], yes: str, no: str, *, expected: bool) -> TextRule:
    """A rule about a property that a text has or does not have."""
    return TextRule(
        name,
        lambda texts: look(texts).to_numpy(zero_copy_only=False),
        lambda found: found == expected,
        lambda found: yes if found else no,
    )
