"""Answers without a model, made of sentences of passages.

rank_statements.py      entry point: ranks statements by fitted weights and chooses the best ones
statements.py           splits a passage into statements: sentences, list items, rows of tables
features.py             features of a statement for a question, which the weights multiply
kinds.py                the kind of answer that a question wants, and spans of that kind
comparisons.py          decides which of two named things is older, larger or cheaper
cells.py                chooses the statement about one thing in one period
covering_sentences.py   answers about the whole corpus: sentences that cover it, by theme
counting.py             reads what a question asks to count
data/                   the fitted weights, and lists of words
"""
