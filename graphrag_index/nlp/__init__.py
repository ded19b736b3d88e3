"""Extraction without a model: names, terms, variants of names, and their association.

mentions.py           entry point: mentions of entities, and the pairs mentioned together
name_spans.py         capitalized spans, and signs of how each is used
name_words.py         known words of names, their base forms, patterns of spans
word_table.py         the words of the corpus as numbers, and recurring noun phrases
corpus_statistics.py  usage of the spans and their words in the whole corpus
name_classifier.py    which spans are names, and where they are cut
name_forms.py         spellings, inflected and titled forms of one name
variants.py           short forms of full names
uncased.py            names in scripts without capitals, and fallback entities
values.py             numbers, amounts and dates
data/                 word lists
"""
