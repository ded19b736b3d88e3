"""Questions made from an index, with known answers and spans.

facts.py            sentences that state a fact about a named subject
questions_of_facts.py  questions of each kind from facts
index_sentences.py  sentences of an index that stand alone, with the names in them
make_questions.py   a seeded choice of questions of all kinds, split by document
fact_words.yaml     the words and patterns of English sentences that facts.py understands

question_sources.py   passages that a model makes questions from
model_requests.py     requests to the model, and the checks of its replies
natural_questions.py  questions in natural words: rounds of requests and checks
"""
