"""The person whom the corpus usually means with a surname or a given name alone."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphrag_nlp.names.name_forms import Words
from graphrag_nlp.names.name_words import more_given_names
from graphrag_nlp.names.place_ratings import rate_known_places
from graphrag_nlp.text.languages import TITLES_OF_WOMEN

# A surname alone means a person whom other documents name in full, rather than a relative whom its
# own document names in full, if this many documents use the surname without any full name, and if
# the person is named in full in so many times the documents of the relative: Trump, Ivanka Trump.
MIN_DOCUMENTS_OF_FAMOUS = 5
MIN_RATIO_OF_FAMOUS = 10
# A word means one person as a surname and another one as a given name. The corpus decides if it
# means one of them in at least this many documents, and this many times those of the other one.
MIN_DOCUMENTS_OF_USAGE = 3
MIN_RATIO_OF_USAGE = 2
# Many people have one of the short surnames of East Asia: Wang, Kim.
MAX_CHARS_OF_VAGUE_SURNAME = 4


@dataclass(frozen=True)
class ShortFormUsage:
    """The usage of short forms, and of full names, in the corpus.

    `short` has the word of each short form. `surname_first` maps (document, short form) to a name
    that begins with the word, if another name ends with it. `unnamed` counts the documents that
    use a word without the full name of one person, and `n_documents` those with a full name.
    """

    short: dict[int, str]
    surname_first: dict[tuple[int, int], int]
    unnamed: Counter[str]
    n_documents: Counter[int]


def prefer_usual_bearers(
    in_document: dict[tuple[int, int], int],
    bearers: Mapping[str, Collection[int]],
    usage: ShortFormUsage,
    words: Sequence[Words],
) -> None:
    """Correct the short forms with which the corpus usually means another person.

    `in_document` maps (document, short form) to the person whom the document names in full, and is
    changed. `bearers` are the persons with each surname, and `words` are those of each name.
    """
    short, n_documents = usage.short, usage.n_documents
    # For each word, the person with this surname in the most documents.
    usual = {
        word: min(persons, key=lambda person: (-n_documents[person], person))
        for word, persons in bearers.items()
        if persons
    }
    n_meant = Counter((short[name], person) for (_, name), person in in_document.items())

    def is_usual(word: str, person: int, other: int) -> bool:
        n, n_other = n_meant[word, person], n_meant[word, other]
        return n >= MIN_DOCUMENTS_OF_USAGE and n >= MIN_RATIO_OF_USAGE * n_other

    for (document, name), entity in list(in_document.items()):
        word = short[name]
        person = usual.get(word, entity)
        ratio = n_documents[person] / max(1, n_documents[entity])
        is_famous = usage.unnamed[word] >= MIN_DOCUMENTS_OF_FAMOUS and ratio >= MIN_RATIO_OF_FAMOUS
        title = words[name][0].lower().rstrip(".")
        is_given_name = entity not in bearers.get(word, ())
        first = usage.surname_first.get((document, name))
        if is_famous and title not in TITLES_OF_WOMEN:
            in_document[document, name] = person
        elif is_given_name and person != entity and is_usual(word, person, entity):
            del in_document[document, name]
        elif first is not None and is_usual(word, first, entity):
            in_document[document, name] = first


def find_vague_surnames(words: Collection[str]) -> set[str]:
    """Return the surnames that many people have, or that are also a given name or a place."""
    names = sorted(words)
    ratings = rate_known_places(names)
    return {
        word
        for word, rating in zip(names, ratings, strict=True)
        if rating or len(word) <= MAX_CHARS_OF_VAGUE_SURNAME or word in more_given_names()
    }
