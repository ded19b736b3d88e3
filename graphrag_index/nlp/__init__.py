"""Extraction of names and terms without a model, and of pairs that are mentioned together.

find_names.py         entry point: mentions of entities, and pairs mentioned together
name_spans.py         capitalized spans, and the words around them that show their usage
span_boundaries.py    start and end of capitalized spans: sentences, lines, joints such as "&"
name_words.py         known words of names, base forms, and patterns of spans
word_table.py         the words of the corpus as numbers, and recurring noun phrases
corpus_statistics.py  counts of the spans and their words in the whole corpus
name_classifier.py    decides if a span is a name, and cuts spans of several names
name_forms.py         merges spellings, inflected forms and titled forms of one name
variants.py           merges short forms with the full names
uncased.py            names in scripts without capitals, and fallback entities
values.py             numbers, amounts and dates
data/                 word lists
"""
