"""Extraction without a model: names, terms, variants of names, and their association.

mentions.py           entry point: from documents to mentions of entities
name_spans.py         capitalized spans, and signs of how each is used (patterns: name_pattern.py)
word_table.py         the words of the corpus as numbers, and recurring noun phrases
corpus_statistics.py  usage of the spans and their words in the whole corpus
name_classifier.py    which spans are names, and where they are cut
name_forms.py         spellings, inflected and titled forms of one name (base_forms.py)
variants.py           short forms of full names
uncased.py            names in scripts without capitals, and fallback entities
type_keywords.py      words that tell the type of an entity
association.py        which entities belong together, how strongly, and the best sentence
values.py             numbers, amounts and dates
data/                 word lists
"""
