"""Answers without evidence, also to questions in another language than the documents."""

from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.direct_answer_words import word_lists
from graphrag_query.question.question import Question

if TYPE_CHECKING:
    from graphrag_query.answer import Context


def answer_without_evidence(question: Question, context: "Context") -> Answer:
    """Say in the language of a question that nothing answers it.

    If the documents are in other languages, the answer says in which.
    """
    texts = word_lists()["unsaid"]
    code = question.language.code if question.language.code in texts else "en"
    text = " ".join(filter(None, [texts[code]["none"], _name_languages(question)]))
    return question.answer(text, Outcome.NO_EVIDENCE, context=context)


def _name_languages(question: Question) -> str:
    """Say which languages the documents have; "" if the one of the question is among them."""
    code, languages = question.language.code, question.index.main_languages
    words = word_lists()["languages_of_documents"].get(code)
    if words is None or code in languages:
        return ""
    names = [words["names"].get(language) for language in sorted(languages)]
    if not names or None in names:
        return ""
    joined = f" {words['and']} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return str(words["documents"].format(languages=joined))
