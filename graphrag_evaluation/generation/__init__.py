"""Questions made from an index, with known answers and spans.

facts.py              sentences that state a fact about a named subject
fact_words.yaml       the words and patterns of English sentences that facts.py understands
make_questions.py     questions of facts, without a model: a seeded choice, split by document
natural_questions.py  questions in natural words: their passages, rounds of requests, checks
"""
