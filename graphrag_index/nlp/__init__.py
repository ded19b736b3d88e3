"""Extraction of names and terms without a model, and of pairs that are mentioned together.

find_names.py         entry point: mentions of entities, and pairs mentioned together
name_spans.py         capitalized spans that may be names, without words before and after them
span_boundaries.py    start and end of capitalized spans: sentences, lines, joints such as "&"
span_extensions.py    words in lower case and numbers that belong to a name
law_names.py          laws in lower case, and bodies in capital letters
span_usage.py         the words around spans that show their usage
span_words.py         tests of the words of a span: persons, genitives, words before a name
span_cuts.py          cuts spans of several names
glued_names.py        cuts English spans of two names that other rules leave whole
span_openings.py      words at the start of a span that stand before its name
capitalized_terms.py  terms of manuals and contracts with capitals, which are no names
nameless.py           parts of a text without names
name_words.py         known words of names, base forms, and patterns of spans
name_shapes.py        writing of persons' names, and of names of software
word_table.py         the words of the corpus as numbers, and recurring noun phrases
corpus_statistics.py  counts of the spans and their words in the whole corpus
used_names.py         spans and acronyms that the corpus uses as names
german_names.py       German common nouns and names
compounds.py          German common nouns, loan words, and names of models
name_classifier.py    collects the names in all spans
entity_types.py       types of names, from known names, head words and usage
name_forms.py         merges spellings, inflected forms and titled forms of one name
variants.py           merges short forms with the full names
uncased.py            names in scripts without capitals, and fallback entities
values.py             numbers, amounts and dates
data/                 word lists
"""
