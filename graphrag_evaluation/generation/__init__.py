"""Questions made from an index, with known answers and spans.

make_questions.py     questions of sentences that state a fact, without a model; split by document
fact_words.yaml       the words and patterns of English sentences that are understood
natural_questions.py  questions in natural words: their passages, rounds of requests, checks
"""
