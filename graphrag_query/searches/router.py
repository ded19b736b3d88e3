"""The table of all searches, and the choice of a search by a model or by typical words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request, object_schema
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import compile_lists, fold_question, is_unspaced
from graphrag_query.answer import Answer
from graphrag_query.answering.cell_answer import may_answer_by_cell
from graphrag_query.llm import LLM, first_item
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import language_in, stop_words_of
from graphrag_query.searches.basic_search import basic_search
from graphrag_query.searches.compare_search import compare_search
from graphrag_query.searches.drift_search import drift_search
from graphrag_query.searches.global_search import global_search
from graphrag_query.searches.lazy_search import lazy_search
from graphrag_query.searches.local_search import local_search
from graphrag_query.searches.neighbourhood import neighbourhood_search
from graphrag_query.searches.path_search import path_search
from graphrag_query.searches.structured_search import structured_search

# The searches to choose from and their purposes; the prompt of the choice contains this text.
PURPOSES: Mapping[str, str] = read_lists("data/purposes", Path(__file__).parent)
# Two names joined by an "and" in scripts without spaces and capitals, where names are not found.
_PAIR_OF_NAMES = re.compile(r".{2,}[和与與跟及同と、].{2,}")


@dataclass(frozen=True)
class Search:
    """A search: its function, and the optional tables that it needs.

    `phrase` writes a list of names as a question. It is None if the search takes no names.
    """

    run: Callable[[Question, Any], Answer]
    tables: tuple[str, ...] = ()
    phrase: Callable[[Sequence[str]], str] | None = None
    names_entities: bool = False  # True if the search itself adds notes on misspelt names


# The settings of the search `local` are the section `local_search`, and so on.
SEARCHES: Mapping[str, Search] = {
    "local": Search(local_search),
    "global": Search(global_search, ("community_reports",)),
    "basic": Search(basic_search),
    "drift": Search(drift_search, ("community_reports",)),
    "lazy": Search(lazy_search),
    "path": Search(
        path_search,
        phrase=lambda names: f"How are {' and '.join(names)} connected?",
        names_entities=True,
    ),
    "neighbourhood": Search(neighbourhood_search, phrase=", ".join, names_entities=True),
    "compare": Search(compare_search),
    "structured": Search(structured_search, names_entities=True),
}
METHODS = ("ask", *SEARCHES)


def check_method(method: str) -> None:
    """Raise `SettingsError` if there is no search of this name."""
    if method not in METHODS:
        raise SettingsError(f"There is no search {method!r}. Choose one of {', '.join(METHODS)}.")


@dataclass(frozen=True)
class SearchChoice:
    """A search method and the reason for it.

    `is_without_model` is true if the model could not be reached.
    """

    method: str
    why: str
    notes: tuple[str, ...] = ()
    is_without_model: bool = False


def choose_search(question: Question) -> SearchChoice:
    """Choose the search for a question by a model; without a model or if it fails, by rules.

    A search that cannot answer from this index is replaced by another search.
    """
    if _names_several(question):
        return SearchChoice("compare", "it names several things or periods of a series")
    text, unknown = question.text, question.mentions.unknown_names
    n_known = len(question.mentions.likeliest_mentions)
    n_names = n_known + len(unknown)
    choice = choose_by_model(question.llm, text) if question.llm is not None else None
    if choice is None or choice.method not in PURPOSES:
        by_rules = choose_by_rules(text, n_names)
        choice = replace(choice or by_rules, method=by_rules.method, why=by_rules.why)
    needed = {"path": 2, "neighbourhood": 1}.get(choice.method, 0)
    # If the question has unknown names, the chosen search itself reports them.
    if n_known < needed and (not unknown or n_names < needed):
        why = f"{choice.why}, but the index knows too few of its names for {choice.method} search"
        return replace(choice, method="local", why=why)
    if choice.method == "compare" and not question.cell_coverage.cells:
        why = f"{choice.why}, but it names no things or periods of a series"
        return replace(choice, method="local", why=why)
    if choice.method == "global" and not question.index.has_table("community_reports"):
        return replace(choice, method="lazy", why=f"{choice.why}, and the index has no reports")
    return choice


def _names_several(question: Question) -> bool:
    """Return whether a question names several things or periods of a series."""
    if len(question.cell_coverage.found) < 2:
        return False
    if question.llm is None:
        return may_answer_by_cell(question)
    return question.facets.is_dated or len(question.facets.things) > 1


def choose_by_rules(question: str, n_names: int) -> SearchChoice:
    """Choose by the words of a question and the number of names in it."""
    # Counts need no model; only a choice without a model reads them.
    from graphrag_nlp.answers.counting import read_count_request

    plain, language = fold_question(question), language_in(question)
    found = {kind: pattern.search(plain) for kind, pattern in _read_cues().items()}
    cues = {kind: match.group().strip() for kind, match in found.items() if match}
    if count := read_count_request(question, language, stop_words_of(language)):
        return SearchChoice("global", f"it asks for something that can be counted (“{count.cue}”)")
    # In a script without capitals and spaces, names are not found: look for a pair instead.
    is_pair = is_unspaced(question) and bool(_PAIR_OF_NAMES.search(question))
    named = ("it names nothing", "it names one thing", "it names several things")[min(n_names, 2)]

    def explain_cue(kind: str, meaning: str) -> str:
        return f"{meaning} (“{cues[kind]}”)"

    if "passage" in cues and not ("summary" in cues and "whole" in cues):
        return SearchChoice("basic", explain_cue("passage", "it asks for a passage"))
    if "surroundings" in cues and n_names < 2:
        why = explain_cue("surroundings", "it asks for the neighbours of an entity")
        return SearchChoice("neighbourhood", why)
    if "connection" in cues and (n_names > 1 or (not n_names and is_pair)):
        why = explain_cue("connection", f"it asks how things are connected, and {named}")
        return SearchChoice("path", why)
    is_one = n_names == 1 or (not n_names and is_unspaced(question))
    if is_one and "connection" in cues and "listing" in cues and "whole" not in cues:
        why = explain_cue("connection", "it asks what is connected with one thing")
        return SearchChoice("neighbourhood", why)
    if "whole" in cues and n_names < 2:
        return SearchChoice("global", explain_cue("whole", "it asks about the whole corpus"))
    if "summary" in cues and not n_names:
        why = explain_cue("summary", f"it asks for much at once, and {named}")
        return SearchChoice("global", why)
    return SearchChoice("local", f"{named}, and it does not ask about the whole corpus")


@cache
def _read_cues() -> Mapping[str, re.Pattern[str]]:
    return compile_lists(read_lists("data/route_words", Path(__file__).parent))


def choose_by_model(llm: LLM, question: str) -> SearchChoice:
    """Let a model choose the search. If it fails, the method is empty and a note says why."""
    searches = "\n".join(f"- {name}: {purpose}" for name, purpose in PURPOSES.items())
    messages = llm.messages("choose_search", question, searches=searches)
    try:
        [outcome] = llm.replies([Request("choose a search", messages, CHOICE_FORMAT)], rating=True)
    except ModelError as error:
        note = f"The search was chosen by rules, because the model failed: {error}"
        return SearchChoice("", "", (note,), is_without_model=True)
    if outcome.failure:
        note = f"The search was chosen by rules, because the model failed: {outcome.failure}."
        return SearchChoice("", "", (note,))
    choice: SearchChoice = outcome.values[0]
    return choice


def read_choice(reply: Any) -> ParsedReply:
    """Parse the name of the search from a reply. The name may be inside a longer text."""
    reply = first_item(reply)
    fields = reply if isinstance(reply, Mapping) else {"search": reply}
    said = str(fields.get("search") or fields.get("method") or "").lower()
    found = [name for name in PURPOSES if name in said.replace("neighborhood", "neighbourhood")]
    if len(found) != 1:
        raise ReplyError(f"it names no search: {said[:40]!r}")
    why = " ".join(str(fields.get("why") or "a model chose it").split())
    return ParsedReply(SearchChoice(found[0], why[:200].rstrip(".")))


CHOICE_FORMAT = ReplyFormat(
    "search",
    object_schema(
        {"why": {"type": "string"}, "search": {"type": "string", "enum": list(PURPOSES)}}
    ),
    read_choice,
    'a JSON object like {"why": "it asks who somebody was", "search": "local"}',
)
