"""The table of all searches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_query.answer import Answer
from graphrag_query.question.question import Question
from graphrag_query.searches.basic_search import basic_search
from graphrag_query.searches.drift_search import drift_search
from graphrag_query.searches.global_search import global_search
from graphrag_query.searches.lazy_search import lazy_search
from graphrag_query.searches.local_search import local_search
from graphrag_query.searches.neighbourhood import neighbourhood_search
from graphrag_query.searches.path_search import path_search
from graphrag_query.structured.structured_search import structured_search


@dataclass(frozen=True)
class Search:
    """A search, by its function, and the section of the settings that it takes.

    `tables` are those that it needs beyond the ones of every index. `phrase` writes several
    names as a question, for a search that can be given names.
    """

    run: Callable[[Question, Any], Answer]
    section: str
    tables: tuple[str, ...] = ()
    phrase: Callable[[Sequence[str]], str] | None = None
    names_entities: bool = False  # it says itself which names are misspelt


def _how_connected(names: Sequence[str]) -> str:
    return f"How are {' and '.join(names)} connected?"


SEARCHES: Mapping[str, Search] = {
    "local": Search(local_search, "local_search"),
    "global": Search(global_search, "global_search", ("community_reports",)),
    "basic": Search(basic_search, "basic_search"),
    "drift": Search(drift_search, "drift_search", ("community_reports",)),
    "lazy": Search(lazy_search, "lazy_search"),
    "path": Search(path_search, "path_search", phrase=_how_connected, names_entities=True),
    "neighbourhood": Search(
        neighbourhood_search, "neighbourhood_search", phrase=", ".join, names_entities=True
    ),
    "structured": Search(structured_search, "structured_search", names_entities=True),
}
METHODS = ("ask", *SEARCHES)


def check_method(method: str) -> None:
    """Check that there is a search of this name.

    Raises
    ------
    SettingsError
        There is none.
    """
    if method not in METHODS:
        raise SettingsError(f"There is no search {method!r}; there are: {', '.join(METHODS)}.")
