"""Extraction without a model: names, terms, variants of names, and what links them.

names.py      capitalized spans, and which of them are names
caseless.py   the fallback for scripts that do not mark names
terms.py      recurring noun phrases in lower case
variants.py   short, titled and inflected forms of one name
association.py  which entities belong together, how strongly, and by which sentence
"""
