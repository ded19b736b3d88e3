"""Answers to a question from the sentences of passages: the best two or three, quoted.

Statements are ranked by one set of fitted weights (`data/weights.yaml`). A span of the wanted kind
stands before them only if it is certain, and an answer is unclear below one fitted threshold.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphrag_nlp.answers.comparisons import compare_names
from graphrag_nlp.answers.features import COLUMN, FEATURES, Asked, Bits, Candidates, Floats
from graphrag_nlp.answers.kinds import VALUES, fold_words
from graphrag_nlp.answers.statements import Passage, Statement, find_stems, split_joined_words
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.sentences import are_near_duplicates, distinctive_words

Embed = Callable[[list[str]], "np.ndarray[Any, Any]"]

# Maximum number of words of an answer of several statements.
MAX_WORDS = 60
# Maximum difference between the scores of the best statement and another one in the answer.
MAX_SCORE_GAP = 3.5
# Maximum numbers of statements whose vectors are compared with the question: the best by the other
# features, and those with the most words of the question, for `CLEARNESS`.
MAX_EMBEDDED = 18
MAX_BY_WORDS = 8
# Minimum probability of the best statement among all, so that its only span is certain, and minimum
# share of the question's words near it, and of those beside names in the statement.
MIN_PROBABILITY = 0.6
# Number of statements that compete at least for the probability of the best one.
MIN_COMPETING = 8
MIN_SHARE = 0.5
# Minimum share (0 to 1) of the question's words in a statement in another language that matches.
MIN_FOREIGN_COVERAGE = 0.33
# Number of the best statements whose words tell whether the answer is clear.
N_BEST = 3
# Maximum number of rows of tables in an answer that lists them.
MAX_ROWS = 20
# What tells whether an answer is clear: the probability and the score of the best statement, the
# share of the question's names known of it, and of its other words in the best `N_BEST`; and 1.
CLEARNESS = ("probability", "score", "names", "words", "constant")


class Ranked(NamedTuple):
    """A statement with its score; `coverage` is the share of the question's words in it.

    `similarity` is its cosine to the question, 0 if it was not compared. `is_foreign` is true for
    one in another language that says enough of the question's words.
    """

    statement: Statement
    passage: Passage
    score: float
    similarity: float
    coverage: float
    is_foreign: bool = False


@dataclass(frozen=True)
class SentenceAnswer:
    """The statements to quote, the best first, and what stands before them.

    `opening` is a span or a name that surely answers, or "". `is_compared` is true if a comparison
    decided it. `n_rows` is the number of rows of tables whose cells the question names, if these
    answer. `is_clear` is false if no statement is likely enough to answer. `ranked` has all that
    were compared, the likeliest first.
    """

    chosen: Sequence[Ranked] = ()
    opening: str = ""
    is_compared: bool = False
    n_rows: int = 0
    is_clear: bool = False
    ranked: Sequence[Ranked] = ()


def answer_from_sentences(
    asked: Asked,
    passages: Sequence[Passage],
    embed: Embed,
    *,
    max_statements: int,
    min_similarity: float,
) -> SentenceAnswer:
    """Choose the statements that answer a question, at most `MAX_WORDS` long together.

    `passages` begin with the best. `embed` returns vectors of length 1, a row for each text. A
    statement is quoted if it has a word of the question, the similarity `min_similarity` or the
    highest score. A comparison of two names is decided by a year or a number of each.
    """
    found = Candidates(asked, passages)
    if not len(found.rows):
        return SentenceAnswer()
    order, scores = rank_statements(found, embed)
    ranked = [_describe(found, row, float(scores[row])) for row in order]
    if compared := compare_names(asked, found.statements, found.passages):
        places = dict.fromkeys(compared.statements)
        decisive = [Ranked(found.statements[i], found.passages[i], 0.0, 0.0, 1.0) for i in places]
        return SentenceAnswer(
            decisive, compared.name, is_compared=True, is_clear=True, ranked=ranked
        )
    order, named, is_clear = _choose_named_rows(found, order)
    if named:
        chosen = [Ranked(found.statements[i], found.passages[i], 0.0, 0.0, 1.0) for i in named]
        return SentenceAnswer(
            chosen[:MAX_ROWS], n_rows=len(named), is_clear=is_clear, ranked=ranked
        )
    if not order:
        return SentenceAnswer(ranked=ranked)
    ranked = [_describe(found, row, float(scores[row])) for row in order]
    near = [
        row
        for row, one in zip(order, ranked, strict=True)
        if one.coverage or one.similarity >= min_similarity or one is ranked[0]
    ]
    of_row = dict(zip(order, ranked, strict=True))
    chosen = [of_row[row] for row in choose_statements(found, near, scores, max_statements)]
    is_clear = rate_clearness(found, order, scores) >= 0
    opening = _find_opening(found, order, scores) if is_clear else ""
    return SentenceAnswer(chosen, opening, is_clear=is_clear, ranked=ranked)


def rank_statements(found: Candidates, embed: Embed) -> tuple[list[int], Floats]:
    """Return the rows of the likeliest statements in their order, and the scores of all.

    The scores of two statements differ by the logarithm of how much likelier one of them answers.
    The similarities are added to the features.
    """
    weights = np.array([read_weights()["features"][name] for name in FEATURES])
    rough = found.values @ weights
    best = np.argsort(-rough, kind="stable")[:MAX_EMBEDDED]
    by_words = np.argsort(-found.coverage[found.rows], kind="stable")[:MAX_BY_WORDS]
    compared = np.array(list(dict.fromkeys([*best.tolist(), *by_words.tolist()])))
    texts = [found.statements[found.rows[row]].text_to_embed for row in compared]
    if found.asked.vector is not None:
        found.values[compared, COLUMN["similarity"]] = embed(texts) @ found.asked.vector
    scores = found.values @ weights
    order = compared[np.argsort(-scores[compared], kind="stable")].tolist()
    return _drop_other_rows(found, order), scores


def _drop_other_rows(found: Candidates, order: list[int]) -> list[int]:
    """Drop rows of tables that are about another thing than the best row for the question.

    They have only some of the names that another row has, or of its other words if names are equal.
    """
    said = {i: found.said[found.rows[i]] for i in order if found.statements[found.rows[i]].cells}

    def has_less(one: Bits, two: Bits) -> bool:
        for among in (found.is_name, ~found.is_name):
            lacks, exceeds = (two & ~one & among).any(), (one & ~two & among).any()
            if lacks or exceeds:
                return bool(lacks and not exceeds)
        return False

    others = {i for i, one in said.items() if any(has_less(one, two) for two in said.values())}
    return [row for row in order if row not in others]


def _choose_named_rows(found: Candidates, order: list[int]) -> tuple[list[int], list[int], bool]:
    """Choose the rows of tables whose cells a question names, if one of the tables ranks first.

    They have a named cell in each column of their table that has any, and say the other words of
    the question. Rows of several cells in one column are compared, and need not say words such as
    "deeper". If no row has cells in all columns, those with the first cell tell what else is true
    of it.

    Other rows of these tables are dropped from `order`, which is returned first, if no named cell
    is theirs alone: they are about other things, or the same place. The last value is whether the
    rows say all words.
    """
    asked, statements = found.asked, found.statements
    rows = {i: set(_find_named_cells(asked, s)) for i, s in enumerate(statements) if s.cells}
    table_of = {i: statements[i].about or _join_columns(statements[i]) for i in rows}
    n_with = Counter((table_of[i], cell) for i, cells in rows.items() for cell in cells)
    tables, named = {table for table, _ in n_with}, {cell for _, cell in n_with}
    if not named or table_of.get(int(found.rows[order[0]])) not in tables:
        return order, [], False
    columns: dict[str, set[str]] = defaultdict(set)
    for table, (column, _) in n_with:
        columns[table].add(column)
    of_cells = find_stems(" ".join(value for _, value in named))
    beside = np.array([word not in of_cells for word in asked.words], bool)
    fitting = [
        i
        for i, cells in rows.items()
        if cells and {column for column, _ in cells} == columns[table_of[i]]
    ]
    # Another table may have only some of the cells.
    most = max((len(rows[i]) for i in fitting), default=0)
    fitting = [i for i in fitting if len(rows[i]) == most]
    chosen = [i for i in fitting if found.said[i][beside].all()]
    is_clear = bool(chosen)
    if not chosen and len({column for column, _ in named}) < len(named):
        chosen = fitting
    elif not fitting:
        chosen = [i for i, cells in rows.items() if any(not column for column, _ in cells)]
    keys = {i for i, cells in rows.items() if any(n_with[table_of[i], c] == 1 for c in cells)}
    other = {i for i in rows if table_of[i] in tables} - keys.union(chosen)
    return [row for row in order if found.rows[row] not in other], chosen, is_clear


def _join_columns(record: Statement) -> str:
    return " ".join(cell.partition(": ")[0] for cell in record.cells)


def _find_named_cells(asked: Asked, statement: Statement) -> Iterator[tuple[str, str]]:
    """Yield the column and the folded text of each cell of a row that is in a question, whole.

    The first column has no name. A number without the name of its column is only the first cell,
    such as a year.
    """
    question, stems = f" {fold_words(asked.text)} ", set(asked.words)
    for number, cell in enumerate(statement.cells):
        column, _, value = cell.rpartition(": ")
        words = fold_words(value)
        is_named = not words.isdigit() or not number or not find_stems(column).isdisjoint(stems)
        is_word = not asked.language.function_words.issuperset(words.split())
        if is_named and is_word and f" {words} " in question:
            yield column if number else "", words


def _describe(found: Candidates, row: int, score: float) -> Ranked:
    i = int(found.rows[row])
    similarity = float(found.values[row, COLUMN["similarity"]])
    passage, coverage = found.passages[i], float(found.coverage[i])
    # A name alone is not enough. German writes other nouns like names.
    says_more = found.said[i].sum() > 1 and (
        found.asked.language.capitalizes_nouns or bool((found.said[i] & ~found.is_name).any())
    )
    is_foreign = bool(passage.language) and coverage >= MIN_FOREIGN_COVERAGE and bool(says_more)
    statement = found.statements[i]
    if found.writes_names_apart:
        statement = replace(statement, label=split_joined_words(statement.label))
    return Ranked(statement, passage, score, similarity, coverage, is_foreign)


def choose_statements(
    found: Candidates, order: Sequence[int], scores: Floats, max_statements: int
) -> list[int]:
    """Choose the rows of the best statements within `MAX_WORDS` that do not say the same."""
    chosen: list[int] = []
    n_left, used = MAX_WORDS, list[frozenset[str]]()
    for row in order:
        if len(chosen) == max_statements or scores[row] < scores[order[0]] - MAX_SCORE_GAP:
            break
        statement = found.statements[found.rows[row]]
        n_words, words = len(statement.said.split()), distinctive_words(statement.text)
        is_copy = any(are_near_duplicates(words, other) for other in used)
        if not chosen or (n_words <= n_left and not is_copy):
            chosen.append(row)
            used.append(words)
            n_left -= n_words
    return chosen


def describe_clearness(found: Candidates, order: Sequence[int], scores: Floats) -> Floats:
    """Return the values of `CLEARNESS`."""
    probability = _find_probability(found, order, scores)
    known = found.known[found.rows[order[0]]]
    said = found.said[found.rows[list(order[:N_BEST])]].any(axis=0)
    names, words = _share(found, known, found.is_name), _share(found, said, ~found.is_name)
    return np.array((probability, scores[order].max(), names, words, 1.0))


def _find_probability(found: Candidates, order: Sequence[int], scores: Floats) -> float:
    """Return the probability (0 to 1) that the best statement is the one that answers.

    Where few statements compete, others count that are like the best one but say nothing of the
    question: that a corpus is small makes no statement likelier.
    """
    best = scores[order]
    columns = [COLUMN[name] for name in ("words", "near_words", "similarity")]
    weights = np.array([read_weights()["features"][FEATURES[column]] for column in columns])
    gain = float(found.values[order[0], columns] @ weights)
    n_missing = max(0, MIN_COMPETING - len(order))
    return float(1 / (np.exp(best - best.max()).sum() + n_missing * np.exp(-gain)))


def _share(found: Candidates, held: Bits, among: Bits) -> float:
    """Return the share of some of the question's words, weighted by rarity; 1 of no words."""
    total = float(found.rarity[among].sum())
    return float(found.rarity[held & among].sum()) / total if total else 1.0


def rate_clearness(found: Candidates, order: Sequence[int], scores: Floats) -> float:
    """Return how clearly the best statement answers, at least 0 if clearly.

    A question that is only a name ("Tom Crean?") is answered by any statement about that name.
    Many fit, so the probability of the best one is low and tells nothing.
    """
    if found.asked.is_name_alone:
        return _share(found, found.known[found.rows[order[0]]], ~found.is_name) - 1
    weights = np.array([read_weights()["clearness"][name] for name in CLEARNESS])
    return float(describe_clearness(found, order, scores) @ weights)


def _find_opening(found: Candidates, order: Sequence[int], scores: Floats) -> str:
    """Return the only value in the best statement if it surely answers, or ""."""
    row = order[0]
    i = int(found.rows[row])
    is_certain = (
        _find_probability(found, order, scores) >= MIN_PROBABILITY
        and found.values[row, COLUMN["near_words"]] >= MIN_SHARE
        and _share(found, found.said[i], ~found.is_name) >= MIN_SHARE
    )
    if found.asked.wanted.kind not in VALUES or not is_certain:
        return ""
    text = found.statements[i].text
    spans = {" ".join(text[start:end].split()) for start, end, _ in found.spans[row]}
    return spans.pop().strip(" ,;:") if len(spans) == 1 else ""


@cache
def read_weights() -> Mapping[str, Mapping[str, float]]:
    """Read the fitted weights of `FEATURES` and `CLEARNESS`."""
    return read_lists("weights", Path(__file__).parent / "data")
