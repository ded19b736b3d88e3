"""Another search to suggest if a search found no evidence."""

from dataclasses import replace

from graphrag_index.errors import GraphRAGError, join_names
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_query.answer import Outcome, Suggestion
from graphrag_query.question.cues import find_cues, remove_cues
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import TYPE_OF_WORD
from graphrag_query.retrieval.report_selection import subject_words
from graphrag_query.retrieval.reranking import Reranking
from graphrag_query.searches.main_entities import main_entities
from graphrag_query.searches.router import SEARCHES, choose_search

# Maximum number of entities that a suggestion lists, those with the most relationships.
MAX_ENTITIES = 5
# Searches that compare no sentences with the question, and so need no vectors of sentences.
_WITHOUT_SENTENCES = ("path", "neighbourhood")
# For a question about an entity, these searches read less of the surroundings than local search.
_LESS_LOCAL = ("global", "basic")


def suggest_search(question: Question, method: str, settings: Settings) -> Suggestion | None:
    """Suggest another search for a question for which the search `method` found no evidence.

    The router names the search that fits the question. If this search finds nothing either, and
    the question asks who or what is important, an entity with many relationships is suggested.
    Returns None unless the suggested search finds evidence. The check calls no chat model. If
    the vectors are from a model on a server, no search that compares sentences is suggested.
    """
    search = question.search.model_copy(update={"reader_model": None})
    asked = replace(question, llm=None, search=search, reranking=Reranking(), sink=None)
    try:
        choice = choose_search(asked)
        others = {choice.method: choice.why}
        if asked.mentions.likeliest_mentions and method in _LESS_LOCAL:
            others.setdefault("local", "")
        for other, reason in others.items():
            if other != method and _finds_evidence(asked, other, settings):
                why = f"{other.capitalize()} search finds an answer."
                # Local search is the default of the router, which then has no particular reason.
                if other != "local":
                    why = f"The question {reason.removeprefix('it ')}. {why}"
                return Suggestion(other, (asked.text,), why)
        return _suggest_entity(asked, settings)
    except GraphRAGError:
        # The check failed, but the search itself did not.
        return None


def _finds_evidence(question: Question, method: str, settings: Settings) -> bool:
    """Return whether a search without a model finds evidence for a question."""
    index, search = question.index, SEARCHES[method]
    if not all(map(index.has_table, search.tables)):
        return False
    reads_sentences = method not in _WITHOUT_SENTENCES
    if method == "global":
        reads_sentences = bool(subject_words(question))
    has_remote_vectors = index.settings.generate_text_embeddings.model in index.settings.models
    if reads_sentences and has_remote_vectors:
        return False
    answer = search.run(replace(question, counts={}), getattr(settings, f"{method}_search"))
    return answer.outcome is Outcome.ANSWERED


def _suggest_entity(question: Question, settings: Settings) -> Suggestion | None:
    """Suggest the entity with the most relationships if the question asks who is important.

    Returns None if the question has another subject. If it asks for a type, such as people, only
    entities of this type are suggested.
    """
    cues = find_cues(question.text)
    if "whole" not in cues and "summary" not in cues:
        return None
    text = remove_cues(question.text, *cues)
    kinds = [TYPE_OF_WORD.get(word) for word in subject_words(replace(question, text=text))]
    if None in kinds:
        return None
    titles = main_entities(question.index, kinds, MAX_ENTITIES)["title"].to_list()
    for title in titles:
        named = replace(question, text=title, names=(title,))
        if _finds_evidence(named, "neighbourhood", settings):
            why = f"The entities with the most relationships are: {join_names(titles)}."
            return Suggestion("neighbourhood", (title,), why)
    return None
