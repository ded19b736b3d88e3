"""Words in a name that show the type of its entity: "University", "Island", "Treaty"."""

from graphrag_nlp.text.languages import read_lists, word_set

_WORDS = read_lists("graphrag_nlp/text/data/type_words")
ORGANIZATION_WORDS, PLACE_WORDS = word_set(_WORDS["organizations"]), word_set(_WORDS["places"])
EVENT_WORDS = word_set(_WORDS["events"])
TYPE_WORDS = ORGANIZATION_WORDS | PLACE_WORDS | EVENT_WORDS
# Words for types that are also surnames: Church, Hill.
TYPE_WORDS_IN_SURNAMES = word_set(_WORDS["surnames"])
