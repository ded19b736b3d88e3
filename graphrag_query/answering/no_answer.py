"""Answers without evidence, also to questions in another language than the documents."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.direct_answer_words import word_lists
from graphrag_query.answering.extractive import RankedSentence, TextUnit, cite_passage
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

if TYPE_CHECKING:
    from graphrag_query.answer import Context

# Maximum number of sentences with the names of a question in another language, and of their words.
MAX_NEAREST = 2
MAX_WORDS_OF_NEAREST = 60


def answer_without_evidence(
    question: Question,
    ranked: Sequence[RankedSentence],
    text_units: Mapping[int, TextUnit],
    context: "Context",
) -> Answer:
    """Say in the language of a question that nothing answers it.

    If the documents are in other languages, the answer says in which. The names and numbers of the
    question are the same there: sentences that have all of them follow as the nearest.
    """
    texts = word_lists()["unsaid"]
    code = question.language.code if question.language.code in texts else "en"
    text, others = texts[code]["none"], _name_languages(question, code)
    if not others:
        return question.answer(text, Outcome.NO_EVIDENCE, context=context)
    text = f"{text} {others}"
    nearest = _find_same_names(question, ranked)
    if not nearest:
        return question.answer(text, Outcome.NO_EVIDENCE, context=context)
    chosen = [sentence.candidate for sentence in nearest]
    citations = tuple(
        cite_passage(number, candidate, text_units[candidate.text_unit])
        for number, candidate in enumerate(chosen, 1)
    )
    quoted = [f"{candidate.quotation} [{number}]" for number, candidate in enumerate(chosen, 1)]
    text = " ".join([text, texts[code]["nearest"], *quoted])
    return question.answer(text, Outcome.NO_EVIDENCE, citations=citations, context=context)


def _name_languages(question: Question, code: str) -> str:
    """Say which languages the documents have, if the one of the question is none of them."""
    languages = question.index.main_languages
    words = word_lists()["languages_of_documents"][code]
    names = [words["names"].get(language) for language in sorted(languages)]
    if not names or question.language.code in languages or None in names:
        return ""
    joined = f" {words['and']} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return str(words["documents"].format(languages=joined))


def _find_same_names(question: Question, ranked: Sequence[RankedSentence]) -> list[RankedSentence]:
    """Return the best sentences that have all names and numbers of a question, if it has any."""
    names = {word for span in question.mentions.spans for word in span.words}
    names |= {word for word in WORD.findall(question.text.lower()) if word[0].isdigit()}
    found, n_left = list[RankedSentence](), MAX_WORDS_OF_NEAREST
    for sentence in ranked:
        words = set(WORD.findall(f"{sentence.candidate.title} {sentence.candidate.text}".lower()))
        n_words = len(sentence.candidate.quotation.split())
        if names and names <= words and n_words <= n_left and len(found) < MAX_NEAREST:
            found.append(sentence)
            n_left -= n_words
    return found
