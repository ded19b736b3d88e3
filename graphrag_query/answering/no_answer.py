"""Answers without evidence, also to questions in another language than the documents."""

from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.direct_answer_words import word_lists
from graphrag_query.question.question import Question

if TYPE_CHECKING:
    from graphrag_query.answer import Context


# Minimum share (0 to 1) of the documents whose language is known, to say which languages they have.
MIN_SHARE_OF_KNOWN = 0.9


def answer_without_evidence(question: Question, context: "Context") -> Answer:
    """Say in the language of a question that nothing answers it."""
    return question.answer(refuse_in_words(question), Outcome.NO_EVIDENCE, context=context)


def refuse_in_words(question: Question) -> str:
    """Write in the language of a question that nothing answers it.

    If the documents are in other languages, the text says in which.
    """
    texts = word_lists()["unsaid"]
    code = question.language.code if question.language.code in texts else "en"
    return " ".join(filter(None, [texts[code]["none"], _name_languages(question)]))


def _name_languages(question: Question) -> str:
    """Say which languages the documents have; "" if the one of the question may be among them."""
    code, languages = question.language.code, question.index.main_languages
    words = word_lists()["languages_of_documents"].get(code)
    share = question.index.share_of_known_languages
    if words is None or code in languages or share < MIN_SHARE_OF_KNOWN:
        return ""
    names = [words["names"].get(language) for language in sorted(languages)]
    if not names or None in names:
        return ""
    # Spanish "y" is "e" before "inglés".
    conjunction = words["and"]
    if names[-1].startswith("i"):
        conjunction = words.get("and_before_i", conjunction)
    joined = f" {conjunction} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return str(words["documents"].format(languages=joined))
