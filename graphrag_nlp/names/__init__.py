"""Extraction of names and terms without a model, and of pairs that are mentioned together.

find_names.py         entry point: mentions of entities, from candidates to types
mention_links.py      pairs of entities in the same sentence or in neighbouring ones

Spans of capitalized words that may be names, from one document:

name_spans.py         collects the spans of all documents, without function words, dates and numbers
span_boundaries.py    finds the spans; headlines, capital letters, and parts without names
span_ends.py          ends of spans, and what belongs to a name beside its capitals
name_joints.py        joints inside names, such as "&" and "of"
whole_names.py        names that a paragraph defines, and laws and others in lower case
span_usage.py         the words around spans that show their usage

Names in these spans, judged by the whole corpus:

corpus_statistics.py  counts of the spans and their words in the whole corpus
used_names.py         spans, acronyms and German nouns that the corpus uses as names
span_words.py         tests of the words of a span: persons, genitives, words before a name
span_cuts.py          cuts spans of several names, also at particles; the order of all cuts

Variants of one name:

name_forms.py         merges spellings, inflected forms and titled forms of one name
abbreviations.py      merges acronyms with their long forms
variants.py           merges short forms, such as surnames, with the full names

Types of names:

entity_types.py       order of the rules for types; known words and usage as evidence
head_types.py         types that the head of a name shows
type_classifier.py    learned classifier for names of which no rule is sure
name_shapes.py        writing of persons' names, and of names of software

Known words and names:

known_names.py        names that are known everywhere, and places by their kind and size
name_words.py         known words of names, and patterns of spans
base_forms.py         base forms of inflected names
compounds.py          German common nouns, loan words, and names of models
word_table.py         the words of the corpus as numbers, and recurring noun phrases
data/                 word lists; README.md names the source and the licence of each

Without capitals:

uncased.py            names in scripts without capitals, and fallback entities
"""
