"""The subject of a question for a number, and the documents and text units that mention it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from graphrag_index.errors import format_count
from graphrag_nlp.text.languages import MIN_STEM, Language, find_stems
from graphrag_nlp.text.normalize import fold, is_unspaced
from graphrag_query.question.count_request import CountRequest
from graphrag_query.question.question import Mentions, Question
from graphrag_query.question.question_words import WORD
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]

# Number of text units whose texts are searched at once; it limits memory.
BATCH_TEXT_UNITS = 8_192
# Maximum number of letters in which two forms of a word differ at the end.
MAX_ENDING_CHARS = 3
# English endings of the plural, each with the ending of the singular.
_PLURAL_ENDINGS = (
    *(("ies", "y"), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
    *(("oes", "o"), ("s", "")),
)
# Maximum number of forms of a word that the answer lists.
MAX_FORMS = 6
# The words of a term, each with the number behind it.
_WORDS_WITH_NUMBERS = re.compile(r"[^\d\s]\S*\s+\d+(?!\S)|\S+")


@dataclass(frozen=True, eq=False)
class TermCount:
    """The text units that contain a term, in ascending order, and its occurrences.

    A text unit is also counted if it names an entity with this name. `n_mentions` counts
    occurrences of the words. A passage in which two text units overlap is counted once. `forms`
    counts the occurrences of each form of the words, the most frequent first.
    """

    term: str
    text_units: "npt.NDArray[np.int64]"
    n_of_text_units: "npt.NDArray[np.int64]"  # occurrences in each text unit
    documents: "npt.NDArray[np.int64]"
    n_mentions: int
    forms: dict[str, int] = field(default_factory=dict)


def count_term(index: IndexStore, term: str, language: Language, kept: "Flags") -> TermCount:
    """Count the text units and documents that contain a term.

    `kept` has a flag for each text unit of the index; only those with the flag are searched.
    The words of a term are adjacent, in the singular or plural or, in other languages than
    English, with the endings of names. A word with a capital has this capital in the texts too.
    """
    pattern = term_pattern(term)
    n_of_all = np.zeros(index.n_rows("text_unit_rows"), np.int64)
    forms: Counter[str] = Counter()
    for first, texts, overlaps in _read_texts(index, kept):
        found = texts.str.extract_all(pattern)
        holding = np.flatnonzero(found.list.len().to_numpy())
        known = set(found.gather(holding).explode().drop_nulls())
        same = [form for form in known if is_form_of(form, term, language)]
        times = found.gather(holding).list.eval(pl.element().is_in(same)).list.sum()
        n_of_all[first + holding] = times.to_numpy()
        # Count each character once: skip the part of a text unit that the last one contains.
        new = pl.select(texts.gather(holding).str.slice(overlaps.gather(holding))).to_series()
        forms.update(new.str.extract_all(pattern).explode().drop_nulls().to_list())
    forms = Counter({form: n for form, n in forms.items() if is_form_of(form, term, language)})
    for entity in Mentions(index, term, language).exact_entities:
        title, aliases = index.open_mapped("entity_rows").rows([entity], "title", "aliases").row(0)
        if fold(term) in map(fold, (title, *aliases)):
            linked = index.links.text_units_of(entity).numbers
            n_of_all[linked] = np.maximum(n_of_all[linked], 1)
    numbers = np.flatnonzero(n_of_all * kept).astype(np.int64)
    documents = index.open_mapped("text_unit_rows").rows(numbers, "document")["document"]
    spellings = Counter[str]()
    for form, n in forms.items():
        # Names and abbreviations keep their capitals.
        spelling = form if term[:1].isupper() else form.lower()
        spellings[" ".join(spelling.split())] += n
    return TermCount(
        term,
        numbers,
        n_of_all[numbers],
        np.unique(documents.to_numpy()).astype(np.int64),
        sum(forms.values()),
        dict(spellings.most_common()),
    )


def _read_texts(index: IndexStore, kept: "Flags") -> Iterator[tuple[int, pl.Series, pl.Series]]:
    """Yield the first number, the texts, and the overlaps of each batch of text units.

    The text of a text unit without the flag of `kept` is empty.
    The overlap is the number of characters at the start that the text unit before also contains.
    """
    table = index.open_mapped("text_unit_rows")
    places = table.columns("document", "start_char", "end_char")
    same = pl.col("document") == pl.col("document").shift()
    shared = (pl.col("end_char").shift() - pl.col("start_char")).clip(lower_bound=0)
    overlaps = places.select(pl.when(same).then(shared).otherwise(0).fill_null(0)).to_series()
    texts = table.columns("text")["text"]
    for first in range(0, len(table), BATCH_TEXT_UNITS):
        part = slice(first, first + BATCH_TEXT_UNITS)
        is_kept = pl.Series(kept[part])
        read = pl.select(pl.when(is_kept).then(texts[part]).otherwise(pl.lit(""))).to_series()
        yield first, read, overlaps[part]


def term_pattern(term: str) -> str:
    """Return a regular expression for adjacent words that may be forms of a term's words."""
    if is_unspaced(term):
        return re.escape(term)
    return r"\b" + r"[\s-]+".join(map(_word_pattern, WORD.findall(term))) + r"\b"


def _word_pattern(word: str) -> str:
    if len(word) > 1 and word.isupper():
        return re.escape(word)
    stem = word[: max(MIN_STEM, len(word) - MAX_ENDING_CHARS)] if len(word) > MIN_STEM else word
    rest = rf"(?i:{re.escape(stem[1:])})\w*"
    return (re.escape(word[0]) if word[0].isupper() else rf"(?i:{re.escape(word[0])})") + rest


def is_form_of(form: str, term: str, language: Language) -> bool:
    """Return whether words of a text are the words of a term, in the same or another number."""
    if is_unspaced(term):
        return form == term
    words, asked = WORD.findall(form), WORD.findall(term)
    return len(words) == len(asked) and all(
        _stems_of(word, language) & _stems_of(other, language)
        for word, other in zip(words, asked, strict=True)
    )


def _stems_of(word: str, language: Language) -> frozenset[str]:
    folded = fold(word)
    if language.code != "en":
        return find_stems(word, language)
    singulars = [
        folded.removesuffix(plural) + singular
        for plural, singular in _PLURAL_ENDINGS
        if folded.endswith(plural) and len(folded) > MIN_STEM and not folded.endswith("ss")
    ]
    return frozenset({folded, *singulars})


@dataclass(frozen=True, eq=False)
class Subject:
    """The documents and text units with the subject of a question.

    Without a subject, `terms` is empty and the documents are those of the whole corpus.
    `mentions` says for each term how many documents mention it, and how often.
    """

    terms: Sequence[TermCount]
    text_units: "Integers"
    documents: "Integers"
    name: str
    mentions: str

    @property
    def pattern(self) -> str:
        """The pattern of any form of the subject's words."""
        return any_of(form for term in self.terms for form in (*term.forms, term.term))


def find_subject(
    question: Question, request: CountRequest, document_of: "Integers", documents: "Integers"
) -> Subject:
    """Find the documents that mention the subject of a question.

    `document_of` has the document of each text unit of the index. Only `documents` count.
    """
    kept = np.isin(document_of, documents)
    terms = _count_terms(question, request, kept)
    if not terms:
        return Subject((), np.flatnonzero(kept), documents, "", "")
    is_any = request.is_any or request.counted == "subjects"
    found = terms[0].documents
    for term in terms[1:]:
        join = np.union1d if is_any else np.intersect1d
        found = join(found, term.documents)
    numbers = np.unique(np.concatenate([term.text_units for term in terms]))
    numbers = numbers[np.isin(document_of[numbers], found)]
    quoted = [f"“{term.term}”" for term in terms]
    name = f" {'or' if is_any else 'and'} ".join(quoted)
    return Subject(terms, numbers, found, name, " ".join(map(_describe_mentions, terms)))


def restrict_to_dates(
    index: IndexStore, request: CountRequest, documents: "Integers"
) -> tuple["Integers", CountRequest]:
    """Return the documents of the dates that the question names.

    If most documents have no date, the dates are words of the subject instead.
    """
    names = (*(date.text for date in request.dates), *request.years)
    if not names:
        return documents, request
    dated = index.dated_documents(documents)
    if 2 * dated.height < len(documents):
        return documents, replace(request, terms=(*request.terms, *names), dates=(), years=())
    kept = [
        document
        for document, day in dated.iter_rows()
        if day[:4] in request.years or any(date.matches(day) for date in request.dates)
    ]
    return np.array(sorted(kept), np.int64), request


def _count_terms(question: Question, request: CountRequest, kept: "Flags") -> list[TermCount]:
    """Count each term in the text units with the flag of `kept`.

    A phrase that no document contains is counted word by word. A word and the number behind it,
    such as Article 50, stay together.
    """
    language, counts = question.language, list[TermCount]()
    for term in request.terms:
        count = count_term(question.index, term, language, kept)
        words = _WORDS_WITH_NUMBERS.findall(term)
        if len(count.text_units) or len(words) == 1 or f'"{term}"' in question.text:
            counts.append(count)
        else:
            counts += [count_term(question.index, word, language, kept) for word in words]
    return counts


def any_of(names: Iterable[str]) -> str:
    """Return a pattern of any of these words or names, the longest one first."""
    patterns = (
        re.escape(name) if is_unspaced(name) else rf"\b{re.escape(name)}\b"
        for name in sorted(names, key=len, reverse=True)
    )
    return "|".join(patterns)


def _describe_mentions(term: TermCount) -> str:
    """Say how many documents mention a term, how often, and in which forms of its words."""
    n = len(term.documents)
    said = f"{format_count('documents', n)} {'mentions' if n == 1 else 'mention'} “{term.term}”"
    if not term.forms:
        return f"{said}, by other names of it." if n else f"{said}."
    times = "once" if term.n_mentions == 1 else f"{term.n_mentions:,} times in all"
    if list(term.forms) == [term.term]:
        return f"{said}, {times}."
    forms = [f"{form} {n:,}" for form, n in list(term.forms.items())[:MAX_FORMS]]
    if len(term.forms) > MAX_FORMS:
        forms.append(f"other forms {sum(list(term.forms.values())[MAX_FORMS:]):,}")
    return f"{said}, {times}: {', '.join(forms)}."
