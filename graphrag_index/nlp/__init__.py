"""Extraction without a model: names, terms, variants of names, and what links them.

mentions.py      from documents to mentions of entities: calls what follows, in this order
names.py         capitalized spans, and the signs of how each is used
terms.py         recurring noun phrases in lower case
usage.py         how the corpus uses the spans and their words
judging.py       which spans are names, and where they are cut
variants.py      short, titled and inflected forms of one name
inflection.py    the base form of words in languages with cases
given_names.py   names that tell persons from other things
kinds.py         words that tell what kind of thing a name is for
caseless.py      the fallback for scripts that do not mark names:
unspaced.py        Chinese, Japanese, Thai
spaced.py          Arabic, Hebrew, Hindi, Korean, Georgian
stand_ins.py     what stands for a document in which nothing was found
association.py   which entities belong together, how strongly, and by which sentence
"""
