"""Say first what a question asks for and no sentence says: a word, a date or a number.

"When did Ann marry?" is not answered by the dates of other things that Ann did. The nearest two
sentences still follow, since they may say it in words that are not known to mean the same. A word
that no document has proves nothing: the documents may say all such things in another word.

An answer also begins so if no sentence is likely enough to answer: all that were read say little of
the question, and none stands out from the others.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from graphrag_index.text.normalize import stem_word
from graphrag_query.answering.answer_spans import (
    FIT_OF_COUNT,
    find_enumerations,
    find_name_words,
    find_new_spans,
)
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.direct_answer_words import find_phrases, word_lists
from graphrag_query.answering.extractive import Candidate, RankedSentence, is_question
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.cues import fold_question
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    WORD,
    content_words,
    split_joined_words,
)
from graphrag_query.retrieval.related_words import RelatedWords

# Number of the best sentences that must say none of the words, also if they are about other things.
N_BEST = 3
# Minimum match of similar words (0 to 1, see `RelatedWords`): "relocate" is said by "moved".
MIN_MATCH = 0.2
# Kinds of answers whose parts are found wherever a sentence has them, and the lists of the words
# that stand for such a part: "no children", "on weekends".
KINDS = {"number": "unsaid_number", "date": "unsaid_date"}
# Minimum fit of a part that may be of the wanted kind.
MIN_FIT = 1.0
# Maximum number of words between a word such as "many" or "twins" and the noun that it counts.
MAX_WORDS_FROM_VAGUE = 2
# Minimum share (0 to 1) of the words beside the names that a sentence on what is asked says.
MIN_TOLD_SHARE = 0.5
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
# A word of a question for a measure, which no answer needs: "how far", "wie hoch".
_MEASURE = re.compile(r"\b(?:how|wie)\s+(?!old\b|alt\b)(\w+)", re.IGNORECASE)
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
    or if no evidence may tell the number of what is counted.
    """
    language, wanted = question.language, question.wanted
    lists: Mapping[str, Mapping[str, str]] = word_lists()["unsaid"]
    texts = lists.get(language.code)
    if texts is None or wanted.kind == "yes_no" or any(s.is_translated for s in evidence):
        return ""
    asked = AskedWords(question)
    beside = _find_words_beside_names(question, asked)
    best = [_join(s.candidate) for s in evidence[:N_BEST]]
    # The best sentences may reply to a question.
    about = [
        _join(s.candidate)
        for s in evidence[N_BEST:]
        if s.is_about_name or is_question(s.candidate.text)
    ]
    # The best sentences mostly say a word, so that the others need not be read.
    if beside and all(beside.isdisjoint(_find_said(asked, group)) for group in (best, about)):
        words = [w for w in WORD.findall(question.text) if stem_word(w.lower()) in beside]
        similar = RelatedWords.find([word.lower() for word in words], language).match(best)
        is_similar = similar.max(initial=0.0) >= MIN_MATCH
        if words and not is_similar and _are_in_documents(words, question, candidates):
            return texts["words"].format(words=_quote_words(question, beside))
    if wanted.kind not in KINDS:
        return ""
    if wanted.is_counted:
        is_told = any(_tells_count(sentence, question, asked, types) for sentence in evidence)
        return "" if is_told else texts["count"]
    vague = find_phrases(KINDS[wanted.kind], language.code)
    for candidate in (sentence.candidate for sentence in evidence):
        if _has_kind(candidate, question, types):
            return ""
        if vague.search(fold_question(candidate.text)):
            said = _find_said(asked, [_join(candidate)]) & beside
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

    Only a question with two relations has an answer about another name. Chats speak of themselves,
    and other languages write names in other ways.
    """
    best, code = evidence[0].candidate, question.language.code
    if evidence[0].is_about_name or best.label or question.index.main_languages - {code}:
        return evidence
    if AskedWords(question).n_relations >= MIN_RELATIONS_TO_OTHERS:
        return evidence
    return [sentence for sentence in evidence if sentence.is_about_name] or evidence


def is_unclear(question: Question, evidence: Sequence[RankedSentence]) -> bool:
    """Return whether no sentence is likely enough to answer a question.

    `evidence` has the sentences by how likely they answer. If the best says all names and most of
    the other words, others that are as likely may say the same. Words prove nothing if documents
    are in another language than the question.
    """
    code = question.language.code
    if code not in word_lists()["unsaid"] or question.wanted.kind in KINDS_NEVER_UNCLEAR:
        return False
    scores = np.array([sentence.score for sentence in evidence])
    clearness = 1 / np.exp(scores - scores[0]).sum() + WEIGHT_OF_SCORE * scores[0]
    if clearness >= MIN_CLEARNESS or question.index.main_languages - {code}:
        return False
    asked = AskedWords(question)
    beside = _find_words_beside_names(question, asked)
    said = [_find_said(asked, [_join(sentence.candidate)]) for sentence in evidence[:N_BEST]]
    has_names = asked.stems - asked.beside_names <= said[0]
    if has_names and len(said[0] & beside) >= MIN_SHARE_OF_CLEAR * len(beside):
        return False
    n_said = len(beside & frozenset[str]().union(*said))
    return bool(clearness + WEIGHT_OF_SHARE * n_said / max(1, len(beside)) < MIN_CLEARNESS)


def choose_nearest(question: Question, chosen: Sequence[Candidate]) -> list[Candidate]:
    """Return the first sentence, and the one that says most words of the question beside it.

    If none says more, the second one is the one most similar to the words that the first lacks,
    unless the first is more similar: bees are animals. The second one is left out if both are
    longer than `MAX_WORDS_OF_NEAREST`.
    """
    asked = AskedWords(question)
    first, *others = chosen
    said = _find_said(asked, [_join(first)])
    n_left = MAX_WORDS_OF_NEAREST - len(first.quotation.split())
    others = [other for other in others if len(other.quotation.split()) <= n_left]
    more = [len(_find_said(asked, [_join(other)]) - said) for other in others]
    if any(more):
        return [first, others[more.index(max(more))]]
    lacking = _find_words(question, _find_words_beside_names(question, asked) - said)
    if not others or not lacking:
        return [first]
    embedder = question.index.embedder
    vectors = embedder.embed([candidate.text_to_embed for candidate in (first, *others)])
    similarities = vectors @ embedder.embed([" ".join(lacking)], are_queries=True)[0]
    nearest = int(similarities.argmax())
    return [first, others[nearest - 1]] if nearest else [first]


def introduce_nearest(question: Question, nearest: Sequence[Candidate], unsaid: str) -> str:
    """Return what stands before the nearest sentences of a question that none answers.

    `unsaid` is the sentence on what no sentence says. Without it, up to `MAX_LACKING` words that
    the nearest sentences do not say either are quoted.
    """
    texts: Mapping[str, str] = word_lists()["unsaid"][question.language.code]
    if unsaid:
        return f"{unsaid} {texts['nearest']}"
    asked = AskedWords(question)
    lacking = _find_words_beside_names(question, asked).difference(
        _find_said(asked, [_join(candidate) for candidate in nearest]), question.wanted.categories
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


def _tells_count(
    sentence: RankedSentence, question: Question, asked: AskedWords, types: Mapping[str, str]
) -> bool:
    """Return whether a sentence may tell how many there are of what the question wants counted.

    It has a number before the noun; or one that counts nothing else, and the noun or most words of
    the question; or a list and most words; or a word such as "no" beside the noun. It is about a
    name of the question, unless it has further words of it: the number of "shops" may be that of
    another company.
    """
    text, language = sentence.candidate.text, question.language
    words = list(dict.fromkeys(WORD.findall(text.lower())))
    nouns = set(question.wanted.nouns)
    nouns.update(stem_word(word) for word in _find_like_nouns(question, asked, words))
    beside = _find_words_beside_names(question, asked)
    said = _find_said(asked, [_join(sentence.candidate)]) & beside
    wanted = replace(question.wanted, nouns=tuple(nouns))
    spans = find_new_spans(text, question.text, wanted, language, types)
    fit = max((span.fit for span in spans), default=0.0)
    if fit >= FIT_OF_COUNT and (sentence.is_about_name or said - nouns):
        return True
    if not sentence.is_about_name:
        return False
    says_most = len(said) >= MIN_TOLD_SHARE * len(beside)
    if fit >= MIN_FIT and (says_most or not nouns.isdisjoint(map(stem_word, words))):
        return True
    if says_most and find_enumerations(text, language):
        return True
    plain = fold_question(text)
    vague = find_phrases(KINDS["number"], language.code).finditer(plain)
    near = (
        (
            *WORD.findall(plain, 0, found.start())[-MAX_WORDS_FROM_VAGUE:],
            *WORD.findall(plain, found.end())[:MAX_WORDS_FROM_VAGUE],
        )
        for found in vague
    )
    return any(stem_word(word) in nouns for words in near for word in words)


def _find_like_nouns(question: Question, asked: AskedWords, words: Sequence[str]) -> list[str]:
    """Return the words that mean what a question wants counted, or nearly: "sons" for "kids"."""
    nouns = set(question.wanted.nouns)
    counted = [w for w in WORD.findall(question.text.lower()) if stem_word(w) in nouns]
    matches = RelatedWords.find(counted, question.language).match(words)
    likeness = matches.max(axis=1, initial=0.0)
    return [
        word
        for word, match in zip(words, likeness, strict=True)
        if match > 0 or nouns & asked.find_related([word])
    ]


def _has_kind(candidate: Candidate, question: Question, types: Mapping[str, str]) -> bool:
    """Return whether a sentence has a number, date or time that the question does not have."""
    wanted = question.wanted
    kinds = [wanted, WantedAnswer("time")] if wanted.kind == "date" else [wanted]
    return bool(candidate.time) or any(
        span.fit >= MIN_FIT
        for kind in kinds
        for span in find_new_spans(candidate.text, question.text, kind, question.language, types)
    )


def _find_words_beside_names(question: Question, asked: AskedWords) -> frozenset[str]:
    """Return the stems of the content words that an answer says, without those of names."""
    beside = asked.beside_names
    if question.language.capitalizes_nouns:
        # Nouns are written like names: leave out those that are names of entities.
        names = (content_words(m.name) for m in question.mentions.likeliest_mentions)
        beside = asked.stems.difference(*names)
    measures = {stem_word(word) for word in _MEASURE.findall(question.text.lower())}
    return frozenset(beside - STEMS_ABOUT_CORPUS - measures)


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


def _join(candidate: Candidate) -> str:
    return f"{candidate.about} {candidate.text} {candidate.title}"


def _find_said(asked: AskedWords, texts: Sequence[str]) -> frozenset[str]:
    """Return the stems of the question's words that texts say, or that they mean as well."""
    words = set(WORD.findall(split_joined_words(" ".join(texts)).lower()))
    found = frozenset(map(asked.find, words))
    return found | asked.find_related(words) | asked.find_synonyms(words)
