"""The members that the titles of reports without a model name."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.report import join_titles
from graphrag_index.reports.theme_terms import MAX_FREQUENT_RANK
from graphrag_nlp.list_columns import Integers
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    ORGANIZATION_WORDS,
    common_words,
    known_firms,
)
from graphrag_nlp.text.languages import read_lists, word_set

Flags = npt.NDArray[np.bool_]

# Numbers of entities in the title of a report, the first that gives a new title; then more.
ENTITIES_IN_TITLE = (3, 2, 4)

# Kinds of organizations, which name none alone, except newspapers.
_LISTS = read_lists("graphrag_nlp/text/data/report_words")
_KINDS = ORGANIZATION_WORDS - word_set(_LISTS["newspapers"])
# A name in capitals: WHO, IT.
_ACRONYM = r"^\P{Ll}*\p{Lu}\P{Ll}*\p{Lu}\P{Ll}*$"
# A name of a newspaper, broadcaster or agency.
_MEDIA = re.compile(rf"(?:^|\s)(?:{'|'.join(_LISTS['media'])})(?:['’]s)?(?:$|\s(?:[^\W\d_a-zß-ÿ]))")
# The label of a turn of a chat, and minimum number of distinct turns of a speaker.
_SPEAKER, MIN_TURNS = r"^(\p{Lu}[^:]{0,30}): ", 3


def is_media_name(title: str) -> bool:
    """Return whether a name is one of a newspaper, broadcaster or agency."""
    return re.search(_MEDIA, title) is not None


def find_turns(sentences: pl.Series) -> pl.DataFrame:
    """Return the `speaker` of each distinct turn of a chat, with a `hash` of the sentence."""
    turns = pl.select(speaker=sentences.str.extract(_SPEAKER, 1), hash=sentences.hash())
    return turns.drop_nulls("speaker").unique()


def rank_title_members(entities: pl.DataFrame, turns: pl.DataFrame, language: str) -> Integers:
    """Return the rank of each entity in titles: names, then other phrases, then speakers.

    A frequent word of the report's `language` alone, such as "Member" or "One", tells as little as
    a noun phrase. Names in capitals, known names and organizations are no such words, even if they
    are spelled alike: "WHO", "Windows", "Times"; but "Council" is one.

    So does a name of a newspaper, broadcaster or agency, which tells where a text is from.

    Within these, the rank is by descending `weight`. Speakers are persons with distinct `turns`,
    the rows of `find_turns`: who speaks in a chat is not what it is about.
    """
    is_phrase, is_speaker = _find_phrases(entities, language), _find_speakers(entities, turns)
    return np.argsort(np.lexsort((-entities["weight"].to_numpy(), is_phrase, is_speaker)))


def flag_names(entities: pl.DataFrame, language: str, turns: pl.DataFrame) -> Flags:
    """Flag the entities that titles of reports in a language name first."""
    return ~(_find_phrases(entities, language) | _find_speakers(entities, turns))


def _find_speakers(entities: pl.DataFrame, turns: pl.DataFrame) -> Flags:
    """Flag the persons who speak in a chat."""
    counts = turns.unique()["speaker"].value_counts()
    speakers = counts.filter(pl.col("count") >= MIN_TURNS)["speaker"]
    is_person = entities["type"] == "person"
    return (is_person & entities["title"].is_in(speakers.implode())).to_numpy()


def _find_phrases(entities: pl.DataFrame, language: str) -> Flags:
    """Flag noun phrases, frequent words alone and media."""
    title, frequent = entities["title"], common_words(language, MAX_FREQUENT_RANK)
    word = title.str.to_lowercase()
    is_known = pl.Series(map(bool, map(find_known_type, title)), dtype=pl.Boolean)
    is_known |= title.is_in(known_firms()) | title.str.contains(_ACRONYM)
    is_known |= (entities["type"] == "organization") & ~word.is_in(_KINDS)
    is_frequent = word.is_in(frequent) | word.str.replace(r"s$", "").is_in(frequent)
    is_frequent &= ~is_known
    is_media = pl.Series(map(is_media_name, title), dtype=pl.Boolean)
    is_frequent |= is_media & entities["type"].is_in(["organization", "name"])
    return ((entities["type"] == "noun phrase") | is_frequent).to_numpy()


def gather_titles(titles: pl.Series, ranked: Sequence[Integers]) -> dict[int, str]:
    """Map the first members of each report to their titles."""
    first = [entities[: max(ENTITIES_IN_TITLE)] for entities in ranked]
    shown = np.unique(np.concatenate(first))
    return dict(zip(shown.tolist(), titles[shown], strict=True))


def choose_title_members(
    ranked: Integers, titles: pl.Series, first_titles: Mapping[int, str], used: set[str]
) -> list[int]:
    """Choose members for the title of a report: another number than three if the title is taken.

    A community and its largest sub-community often have the same main members. The title is
    added to `used`. `first_titles` has the titles of the first members.
    """
    lengths = [*ENTITIES_IN_TITLE, *range(max(ENTITIES_IN_TITLE) + 1, len(ranked) + 1)]
    for n in lengths:
        shown = ranked[:n].tolist()
        title = join_titles([first_titles.get(at) or titles[at] for at in shown])
        if title not in used:
            break
    used.add(title)
    return [int(entity) for entity in ranked[:n]]
