"""Extraction of names and terms without a model, and of pairs that are mentioned together.

find_names.py         entry point: mentions of entities, and pairs mentioned together
corpus_candidates.py  candidates for names and terms, collected from all documents
mention_links.py      links between mentions in the same sentence or in neighbouring ones

Spans of capitalized words that may be names, from one document:

name_spans.py         collects the spans of all documents, with their usage
nameless.py           parts of a text without names
name_starts.py        capitals at which a name may begin, also inside a word: MertensJonas
span_boundaries.py    finds the spans, and what their capitals prove
sentence_case.py      case of sentences: headlines, headings, text in capital letters
shouted_names.py      bodies, states and places in text in capital letters
span_ends.py          ends of spans: line ends, hyphens, full stops
name_joints.py        joints inside names, such as "&" and "of"
spanish_bodies.py     ends of Spanish bodies with several fields: Unión Económica y Monetaria
span_extensions.py    words in lower case and numbers that belong to a name
law_names.py          names with words in lower case, such as laws
definitions.py        names that the first sentence of a paragraph defines, and quoted titles
span_trimming.py      removes function words, dates and numbers at both ends of a span
span_usage.py         the words around spans that show their usage

Names in these spans, judged by the whole corpus:

name_classifier.py    collects the names in all spans
corpus_statistics.py  counts of the spans and their words in the whole corpus
used_names.py         spans and acronyms that the corpus uses as names
german_names.py       German common nouns and names
capitalized_terms.py  terms of manuals and contracts with capitals, which are no names
keywords.py           English words in capitals that are keywords or emphasized, and no acronyms
span_words.py         tests of the words of a span: persons, genitives, words before a name
span_openings.py      words at the start of a span that stand before its name
span_cuts.py          cuts spans of several names; the order of all cuts
particle_cuts.py      cuts at a particle between two names
english_cuts.py       cuts of English spans that other rules leave whole
german_cuts.py        cuts of German lists of committees and persons
name_forms.py         merges spellings, inflected forms and titled forms of one name
variants.py           merges short forms with the full names
short_form_usage.py   whom the corpus usually means with a surname or a given name alone
given_name_forms.py   short forms and transcriptions of given names
head_nouns.py         the name for which a head noun stands in its document
names_by_document.py  the distinct names of each document

Types of names:

entity_types.py       order of the rules for types
type_evidence.py      known words and places, and the usage of a name, as evidence for its type
type_parts.py         types that the parts of a name show
type_classifier.py    learned classifier for names of which no rule is sure
head_types.py         types that the head of a name shows
name_usage.py         shares of mentions beside words of each kind
name_shapes.py        writing of persons' names, and of names of software
place_ratings.py      places by their kind and size

Known words and names:

name_words.py         known words of names, and patterns of spans
known_names.py        names that are known everywhere
base_forms.py         base forms of inflected names
compounds.py          German common nouns, loan words, and names of models
word_table.py         the words of the corpus as numbers, and recurring noun phrases
data/                 word lists

Without capitals:

uncased.py            names in scripts without capitals, and fallback entities
"""
