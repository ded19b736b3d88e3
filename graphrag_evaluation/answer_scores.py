"""Scores of an answer: its outcome, short answer, citations, and support by what it cites."""

import re
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

from graphrag_evaluation.coverage import WordWeights, stated_shares
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_nlp.text.citations import check_citations, find_cited_rows
from graphrag_nlp.text.normalize import UNSPACED, fold
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.question.question_words import content_words

# In a script without spaces between words, each letter counts as a word.
_WORD = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\S)+")
_CITATION_MARK = re.compile(r"\s*\[(\d+)\]")
_MARKS_AFTER_STOP = re.compile(r"([.!?…][\"'”’)]*)((?:\s*\[(?:\d+|Data: [^]]*)\])+)")
# Sentences with fewer content words, such as headings and greetings, state nothing to support.
MIN_WORDS_OF_STATEMENT = 2
# Share of the information of a sentence that the text units it cites must have.
MIN_SUPPORTED_SHARE = 0.5


def count_words(text: str) -> int:
    """Count the words of a text."""
    return sum(1 for _ in _WORD.finditer(text))


def first_words(text: str, n: int) -> str:
    """Return a text up to its word number `n`, with single spaces."""
    plain = " ".join(text.split())
    ends = [word.end() for word in _WORD.finditer(plain)][:n]
    return plain[: ends[-1]] if ends else ""


def outcome_scores(question: EvaluationQuestion, answer: Answer) -> dict[str, float]:
    """Score the outcome, and whether the answer has the short answer.

    A search that failed has neither answered nor refused: its outcome is wrong, and that is all.
    The mean of `no_evidence_precision` over the questions that the search refused is the share
    that it refused rightly; that of `no_evidence_recall`, over the questions that cannot be
    answered, is the share that it refused.
    """
    if answer.outcome.is_failure:
        return {"outcome_right": 0.0}
    refused = answer.outcome is Outcome.NO_EVIDENCE
    scores = {"outcome_right": float(refused != question.is_answerable)}
    if refused:
        scores["no_evidence_precision"] = float(not question.is_answerable)
    if not question.is_answerable:
        scores["no_evidence_recall"] = float(refused)
    elif question.answers:
        said = f" {fold(answer.text)} "
        wanted = filter(None, map(fold, question.answers))
        scores["said"] = float(any(f" {text} " in said for text in wanted))
    return scores


def citation_scores(index: Index, answer: Answer, weights: WordWeights) -> dict[str, float]:
    """Score the citations of an answer; empty if the search gave no answer.

    `citations_valid` is the share of the citations whose quotation stands at its place in the
    document. `supported` is the share of the sentences of the answer that the text units or
    reports cited in them state, by the lexical test of `stated_shares`.
    """
    if answer.outcome is not Outcome.ANSWERED:
        return {}
    units = index.store.text_units(citation.text_unit for citation in answer.citations)
    n_valid = 0
    texts: dict[int, list[str]] = {}
    for citation in answer.citations:
        unit = units.get(citation.text_unit)
        if unit is not None:
            start = max(0, citation.start_char - unit["start_char"])
            end = citation.end_char - unit["start_char"]
            n_valid += unit["text"][start:end] == citation.quote
            texts.setdefault(citation.number, []).append(unit["text"])
    scores = {"citations_valid": n_valid / len(answer.citations)} if answer.citations else {}
    supported = []
    sentences = cited_sentences(answer.text)
    reports = _read_reports(index, {n for s in sentences for n in s.rows.get("Reports", ())})
    for sentence in sentences:
        evidence = [text for number in sentence.citations for text in texts.get(number, ())]
        cited = sorted(sentence.rows.get("Reports", ()))
        evidence += [reports[number] for number in cited if number in reports]
        [share] = stated_shares([sentence.text], evidence, weights)
        supported.append(share >= MIN_SUPPORTED_SHARE)
    return scores | ({"supported": sum(supported) / len(supported)} if supported else {})


def _read_reports(index: Index, communities: Set[int]) -> dict[int, str]:
    """Read the titles and texts of reports by community; those without a report are left out."""
    if not communities:
        return {}
    store = index.store
    reports = store.with_texts(store.reports(sorted(communities)), "full_content")
    columns = reports.select("community", "title", "full_content")
    return {number: f"{title}\n{text}" for number, title, text in columns.iter_rows()}


class CitedSentence(NamedTuple):
    """A sentence without its marks, and the numbers of citations and of rows that it names.

    `rows` has the numbers of rows by section, as in `[Data: Entities (1, 2); Reports (3)]`.
    """

    text: str
    citations: Sequence[int]
    rows: Mapping[str, Set[int]] = MappingProxyType({})


def cited_sentences(text: str) -> list[CitedSentence]:
    """Return the sentences of an answer or a report that state something.

    A sentence without citations has those of the next sentence of its paragraph that has some.
    Headings, and lines that end with a colon, state nothing.
    """
    found: list[CitedSentence] = []
    for paragraph in reversed(text.split("\n")):
        following = CitedSentence("", ())
        # A mark after the full stop belongs to the sentence before it.
        marked = _MARKS_AFTER_STOP.sub(r"\2\1", paragraph)
        for sentence in reversed(split_sentences(marked)):
            said = marked[sentence.start : sentence.end]
            rows = find_cited_rows(said)
            cited = [int(number) for number in _CITATION_MARK.findall(said)]
            plain = _CITATION_MARK.sub("", check_citations(said, {})[0]).strip()
            if cited or rows:
                following = CitedSentence(plain, cited, rows)
            states = len(content_words(plain)) >= MIN_WORDS_OF_STATEMENT
            if states and not plain.endswith(":") and not paragraph.startswith("#"):
                found.append(following._replace(text=plain))
    return found[::-1]
