"""Questions made from an index, with known answers and spans.

facts.py            sentences that state a fact about a named subject
questions_of_facts.py  questions of each kind from facts
make_questions.py   a seeded choice of questions of all kinds, split by document
fact_words.yaml     the words and patterns of English sentences that facts.py understands
"""
