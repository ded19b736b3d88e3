"""Evaluation of an index and its searches on questions with known answers.

questions.py         a question, and what is known about its answer
measures.py          the measures and their meanings
retrieval_scores.py  recall, nDCG and MRR of a ranking
statistics.py        intervals, paired tests, correction for several comparisons
"""
