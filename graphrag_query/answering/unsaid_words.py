"""Say first what a question asks for and no sentence says: a word, a date or a number.

"When did Ann marry?" is not answered by the dates of other things that Ann did. The nearest two
sentences still follow, since they may say it in words that are not known to mean the same. A word
that no document has proves nothing: the documents may say all such things in another word.

An answer also begins so if no sentence is likely enough to answer: all that were read say little of
the question, and none stands out from the others.
"""

import re
from collections.abc import Mapping, Sequence, Set

import numpy as np

from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.phrases import fold_question
from graphrag_query.answering.answer_spans import find_name_words, find_new_spans
from graphrag_query.answering.asked_words import AskedWords, find_words_beside_names
from graphrag_query.answering.direct_answer_words import find_phrases, word_lists
from graphrag_query.answering.extractive import Candidate, RankedSentence, is_question
from graphrag_query.answering.told_counts import (
    MIN_FIT,
    MIN_TOLD_SHARE,
    UNSAID_NUMBER,
    ToldCounts,
    join_words,
)
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    WORD,
)
from graphrag_query.retrieval.related_words import RelatedWords

# Number of the best sentences that must say none of the words, also if they are about other things.
N_BEST = 3
# Minimum match of similar words (0 to 1, see `RelatedWords`): "relocate" is said by "moved".
MIN_MATCH = 0.2
# Kinds of answers whose parts are found wherever a sentence has them, and the lists of the words
# that stand for such a part: "no children", "on weekends".
KINDS = {"number": UNSAID_NUMBER, "date": "unsaid_date"}
# Maximum number of words of the sentences behind such a statement, if there are two.
MAX_WORDS_OF_NEAREST = 50
# Maximum number of words that the nearest sentences are said to lack.
MAX_LACKING = 3
# Minimum clearness of an answer, which is the sum of three parts: the probability of the best
# sentence among all; the share of the words beside the names in the best `N_BEST`; and the score
# of the best. The weights are the ratios of a logistic regression over questions whose evidence is
# there, or was taken away (`benchmarks/near_misses.py`).
MIN_CLEARNESS = 1.3
WEIGHT_OF_SHARE = 0.25
WEIGHT_OF_SCORE = 0.1
# Minimum share (0 to 1) of the words beside the names in a sentence that answers clearly.
MIN_SHARE_OF_CLEAR = 0.6
# Minimum number of relations of a question whose answer may be about another name.
MIN_RELATIONS_TO_OTHERS = 2
# Kinds of questions that many sentences may answer well, or that are answered by a word.
KINDS_NEVER_UNCLEAR = frozenset(("definition", "yes_no"))
# A word with the parts that hyphens join to it: "e-mail".
_HYPHENATED = re.compile(rf"{WORD.pattern}(?:[-\u2010\u2011]{WORD.pattern})*")


def state_what_is_unsaid(
    question: Question,
    evidence: Sequence[RankedSentence],
    candidates: Sequence[Candidate],
    types: Mapping[str, str],
) -> str:
    """Return a sentence on what no evidence says, in the question's language, or "".

    `evidence` has the sentences by how likely they answer, and `candidates` all that were read.
    Something is unsaid if no evidence about the names of the question has another word of it, one
    that means the same or a similar one, although the documents have these words; or if neither
    the evidence nor a sentence about another name in the best one has a part of the wanted kind;
    or if no sentence that was read may tell the number of what is counted.
    """
    language, wanted = question.language, question.wanted
    lists: Mapping[str, Mapping[str, str]] = word_lists()["unsaid"]
    texts = lists.get(language.code)
    if texts is None or wanted.kind == "yes_no" or any(s.is_translated for s in evidence):
        return ""
    asked = AskedWords(question)
    beside = find_words_beside_names(question, asked)
    best = [join_words(s.candidate) for s in evidence[:N_BEST]]
    # The best sentences may reply to a question.
    about = [
        join_words(s.candidate)
        for s in evidence[N_BEST:]
        if s.is_about_name or is_question(s.candidate.text)
    ]
    # The best sentences mostly say a word, so that the others need not be read.
    if beside and all(beside.isdisjoint(asked.find_said(group)) for group in (best, about)):
        words = [w for w in WORD.findall(question.text) if stem_word(w.lower()) in beside]
        similar = RelatedWords.find([word.lower() for word in words], language).match(best)
        is_similar = similar.max(initial=0.0) >= MIN_MATCH
        if words and not is_similar and _are_in_documents(words, question, candidates):
            return texts["words"].format(words=_quote_words(question, beside))
    if wanted.kind not in KINDS:
        return ""
    if wanted.is_counted:
        is_told = ToldCounts(question, evidence, candidates).is_told()
        return "" if is_told else texts["count"]
    vague = find_phrases(KINDS[wanted.kind], language.code)
    for candidate in (sentence.candidate for sentence in evidence):
        if _has_kind(candidate, question, types):
            return ""
        if vague.search(fold_question(candidate.text)):
            said = asked.find_said([join_words(candidate)]) & beside
            if len(said) >= MIN_TOLD_SHARE * len(beside):
                return ""
    # The best sentence may lead to another name: (the wife of) Otto Lenz, Rosa Klein.
    names = find_name_words(evidence[0].candidate.text, language)
    led_to = frozenset[str]().union(*names).difference(WORD.findall(question.text.lower()))
    for candidate in candidates:
        is_led_to = not led_to.isdisjoint(WORD.findall(candidate.text.lower()))
        if is_led_to and _has_kind(candidate, question, types):
            return ""
    return texts[wanted.kind]


def keep_about_names(
    question: Question, evidence: Sequence[RankedSentence]
) -> Sequence[RankedSentence]:
    """Return the sentences about the names of a question, if the best one is about none of them.

    Only a question with two relations has an answer about another name, but not in a cell of a
    table, unless another cell leads to it. Chats speak of themselves, and other languages write
    names in other ways.
    """
    best, code = evidence[0].candidate, question.language.code
    if evidence[0].is_about_name or best.in_turn or question.index.main_languages - {code}:
        return evidence
    is_cell = bool(best.label) and not best.in_list and evidence[0].led_by is None
    if not is_cell and AskedWords(question).n_relations >= MIN_RELATIONS_TO_OTHERS:
        return evidence
    return [sentence for sentence in evidence if sentence.is_about_name] or evidence


def says_everything(question: Question, sentence: RankedSentence) -> bool:
    """Return whether a sentence says all words of a question beside its names."""
    asked = AskedWords(question)
    beside = find_words_beside_names(question, asked).difference(question.wanted.categories)
    if question.wanted.is_counted:
        return False
    return bool(beside) and beside <= asked.find_said([join_words(sentence.candidate)])


def is_unclear(question: Question, evidence: Sequence[RankedSentence]) -> bool:
    """Return whether no sentence is likely enough to answer a question.

    `evidence` has the sentences by how likely they answer. No count is clear if none of the best
    says what is counted. If the best sentence says all names and most of
    the other words, others that are as likely may say the same. Words prove nothing if documents
    are in another language than the question.
    """
    code = question.language.code
    if code not in word_lists()["unsaid"] or question.wanted.kind in KINDS_NEVER_UNCLEAR:
        return False
    scores = np.array([sentence.score for sentence in evidence])
    clearness = 1 / np.exp(scores - scores[0]).sum() + WEIGHT_OF_SCORE * scores[0]
    if question.index.main_languages - {code}:
        return False
    if (
        question.wanted.is_counted
        and not ToldCounts(question, evidence[:N_BEST], ()).is_noun_said()
    ):
        return True
    if clearness >= MIN_CLEARNESS:
        return False
    asked = AskedWords(question)
    beside = find_words_beside_names(question, asked)
    said = [asked.find_said([join_words(sentence.candidate)]) for sentence in evidence[:N_BEST]]
    has_names = asked.stems - asked.beside_names <= said[0]
    if has_names and len(said[0] & beside) >= MIN_SHARE_OF_CLEAR * len(beside):
        return False
    if asked.causes and not has_names:
        # Many sentences say what happened elsewhere, and few its cause.
        return True
    n_said = len(beside & frozenset[str]().union(*said))
    return bool(clearness + WEIGHT_OF_SHARE * n_said / max(1, len(beside)) < MIN_CLEARNESS)


def choose_nearest(
    question: Question, chosen: Sequence[Candidate], ranked: Sequence[RankedSentence] = ()
) -> list[Candidate]:
    """Return the first sentence, and the one that says most words of the question beside it.

    If none says more beside the names, the second one is any of the `ranked` sentences about a name
    that has a word related to those that the first lacks: "sons" to "children". It comes first if
    the first has none of the words. Or else it is the one most similar to the words that the first
    lacks, unless the first is more similar: bees are animals. The second one is left out if both
    are longer than `MAX_WORDS_OF_NEAREST`. If a question says one thing of its names, both are
    about them.
    """
    asked = AskedWords(question)
    beside = find_words_beside_names(question, asked)
    first, *others = chosen
    about = [sentence.candidate for sentence in ranked if sentence.is_about_name]
    if asked.n_relations < MIN_RELATIONS_TO_OTHERS and any(_holds(first, c) for c in about):
        others = [other for other in others if any(_holds(other, c) for c in about)]
    said = asked.find_said([join_words(first)])
    n_left = MAX_WORDS_OF_NEAREST - len(first.quotation.split())
    others = [other for other in others if len(other.quotation.split()) <= n_left]
    more = [asked.find_said([join_words(other)]) - said for other in others]
    n_more = list(map(len, more))
    lacking = _find_words(question, beside - said)
    if lacking and question.mentions.spans and not any(words & beside for words in more):
        fitting = [c for c in about if len(c.quotation.split()) <= n_left]
        related = _find_most_related(question, lacking, first, fitting)
        if related:
            return [first, related] if said & beside else [related, first]
    if any(n_more):
        return [first, others[n_more.index(max(n_more))]]
    if not others or not lacking:
        return [first]
    embedder = question.index.embedder
    vectors = embedder.embed([candidate.text_to_embed for candidate in (first, *others)])
    similarities = vectors @ embedder.embed([" ".join(lacking)], are_queries=True)[0]
    nearest = int(similarities.argmax())
    return [first, others[nearest - 1]] if nearest else [first]


def _find_most_related(
    question: Question, words: Sequence[str], first: Candidate, others: Sequence[Candidate]
) -> Candidate | None:
    """Return the sentence with the word most related to some words, if it is not the first."""
    others = [other for other in others if not _holds(first, other)]
    related = RelatedWords.find([word.lower() for word in words], question.language)
    matches = related.match([first.text, *(other.text for other in others)]).max(axis=1)
    best = int(matches.argmax())
    # Any likeness to what is counted is enough for `ToldCounts`, too.
    min_match = 0 if question.wanted.is_counted else MIN_MATCH
    return others[best - 1] if best and matches[best] > min_match else None


def _holds(wider: Candidate, candidate: Candidate) -> bool:
    """Return whether a quoted sentence, which may be extended, holds a sentence."""
    return (
        wider.text_unit == candidate.text_unit
        and wider.start_char <= candidate.start_char
        and candidate.end_char <= wider.end_char
    )


def introduce_nearest(question: Question, nearest: Sequence[Candidate], unsaid: str) -> str:
    """Return what stands before the nearest sentences of a question that none answers.

    `unsaid` is the sentence on what no sentence says. Without it, up to `MAX_LACKING` words that
    the nearest sentences do not say either are quoted.
    """
    texts: Mapping[str, str] = word_lists()["unsaid"][question.language.code]
    if unsaid:
        return f"{unsaid} {texts['nearest']}"
    asked = AskedWords(question)
    lacking = find_words_beside_names(question, asked).difference(
        asked.find_said([join_words(candidate) for candidate in nearest]),
        question.wanted.categories,
    )
    is_short = 0 < len(lacking) <= MAX_LACKING
    nearest_without = texts["nearest_without"].format(words=_quote_words(question, lacking))
    return f"{texts['unclear']} {nearest_without if is_short else texts['nearest']}"


def _quote_words(question: Question, stems: Set[str]) -> str:
    return ", ".join(f'"{word}"' for word in _find_words(question, stems))


def _find_words(question: Question, stems: Set[str]) -> list[str]:
    """Return the words of a question that have some stems; hyphenated words as a whole."""
    words = [
        word
        for word in _HYPHENATED.findall(question.text)
        if not stems.isdisjoint(stem_word(part.lower()) for part in WORD.findall(word))
    ]
    return [*dict.fromkeys(words)]


def _has_kind(candidate: Candidate, question: Question, types: Mapping[str, str]) -> bool:
    """Return whether a sentence has a number, date or time that the question does not have."""
    wanted = question.wanted
    kinds = [wanted, WantedAnswer("time")] if wanted.kind == "date" else [wanted]
    return bool(candidate.time) or any(
        span.fit >= MIN_FIT
        for kind in kinds
        for span in find_new_spans(candidate.text, question.text, kind, question.language, types)
    )


def _are_in_documents(
    words: Sequence[str], question: Question, candidates: Sequence[Candidate]
) -> bool:
    """Return whether the documents have all words.

    In other languages than English only what was read is searched: the full-text index has the
    stems of English words.
    """
    if question.language.code == "en":
        return not {word.lower() for word in words}.intersection(question.unseen_words)
    read = {word for c in candidates for word in WORD.findall(c.text.lower())}
    return {stem_word(word.lower()) for word in words} <= set(map(stem_word, read))
