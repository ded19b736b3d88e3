"""Classification of capitalized spans as names, by the usage of their words in the corpus.

A word is not a name if the corpus mostly writes it in lower case, or capitalizes it only at the
start of sentences. A span that contains two names, or other words before a name, is cut.
"""

# Before Python 3.12, the annotation array[int] cannot be evaluated.
from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_nlp.names.corpus_statistics import CorpusStatistics
from graphrag_nlp.names.name_forms import ClassifiedNames
from graphrag_nlp.names.name_spans import NameCandidates
from graphrag_nlp.names.name_words import GIVEN_NAMES
from graphrag_nlp.names.span_cuts import find_names
from graphrag_nlp.names.span_words import SpanWords
from graphrag_nlp.names.used_names import UsedNames
from graphrag_nlp.names.word_table import CUE_TYPES
from graphrag_nlp.text.languages import Language


def classify_names(found: NameCandidates, lower: Mapping[str, Counter[str]]) -> ClassifiedNames:
    """Find the names in all distinct spans. Call it after all documents were read."""
    found.restore_cut_words()
    usage = CorpusStatistics(found, lower)
    names, languages_of, parts = _collect_names(found, UsedNames(usage))
    surface, named = parts["surface"].to_numpy(), parts["name"].to_numpy()
    times = np.maximum(np.bincount(named, np.asarray(usage.total)[surface], len(names)), 1)
    # The word before a span shows only the usage of the first name in the span.
    first = parts["offset"].to_numpy() == 0
    lengths = np.fromiter(map(len, found.names), np.int32, len(found.names))
    whole = first & (parts["length"].to_numpy() == lengths[surface])

    cued = parts["cue"].to_numpy()

    def share_of_cue(number: int, kind: str) -> np.ndarray:
        rows = cued == number
        inside = np.bincount(named[rows], np.asarray(usage.total)[surface[rows]], len(names))
        return share_of_mentions(usage.cues[kind], whole) + inside / times

    def share_of_mentions(count: Sequence[int] | np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.bincount(named[rows], np.asarray(count)[surface[rows]], len(names)) / times

    named_in = [*zip(names, languages_of, strict=True)]
    words = {(word, language.code) for name, language in named_in for word in name.split(" ")}
    return ClassifiedNames(
        names=names,
        languages=languages_of,
        # Names share the strings of their words, which saves memory.
        bases=[
            tuple(map(sys.intern, usage.base_form(name.split(" "), language)))
            for name, language in named_in
        ],
        parts=parts,
        place_share=share_of_mentions(usage.place, first),
        preposition_share=share_of_mentions(usage.preposition, first),
        determiner_share=share_of_mentions(usage.determiner, first),
        article_share=share_of_mentions(usage.article, first),
        person_share=share_of_mentions(usage.person, whole),
        common=frozenset(word for word, code in words if usage.is_common(word, code)),
        cue_shares={kind: share_of_cue(number, kind) for number, kind in enumerate(CUE_TYPES)},
        hint_shares={kind: share_of_mentions(count, whole) for kind, count in usage.hints.items()},
        written_lower=frozenset(word for word, code in words if usage.count_lower(word, code)),
    )


def _collect_names(
    found: NameCandidates, used: UsedNames
) -> tuple[list[str], list[Language], pl.DataFrame]:
    """Return the names in all spans, their languages, and their places in the spans."""
    # The second of two words is a surname if the first is a given name.
    pairs = (name.split(" ") for name in found.names if name.count(" ") == 1)
    surnames = {surname for first, surname in pairs if first in GIVEN_NAMES}
    names: dict[str, int] = {}
    languages_of: list[Language] = []
    columns = {column: array("i") for column in ("surface", "name", "offset", "length", "cue")}
    for number in range(len(found.names)):
        parts_of_span: Iterable[tuple[int, str, str]] = [(0, found.names[number], "")]
        if not found.is_defined(number):
            parts_of_span = find_names(SpanWords(used, surnames, number))
        for offset, text, cue in parts_of_span:
            name = names.setdefault(text, len(names))
            if name == len(languages_of):
                languages_of.append(found.languages[number])
            row = (number, name, offset, len(text), CUE_TYPES.index(cue) if cue else -1)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    parts = pl.DataFrame({name: np.frombuffer(a, np.int32) for name, a in columns.items()})
    return list(names), languages_of, parts
