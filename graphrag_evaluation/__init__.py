"""Evaluation of an index and its searches on questions with known answers, and tuning.

questions.py         a question, and what is known about its answer
layouts.py           files of questions, as known evaluation sets write them
layout_writers.py    the same, written
generation/          questions made from an index
systems.py           the systems that are compared: searches of indexes with settings
runs.py              questions asked to systems, with the scores of what came back
gold_passages.py     the passages that a search read, and the gold items in them
search_contexts.py   the contexts of searches within budgets of tokens
measures.py          the measures and their meanings
retrieval_scores.py  recall, nDCG and MRR of a ranking
coverage.py          whether texts state statements, by their words
answer_scores.py     the outcome of an answer, its citations and its support
judging/             judgements of answers by a language model
statistics.py        intervals, paired tests, correction for several comparisons
summary.py           means of systems, and the differences between systems
report/              the report of an evaluation, and its page
graph_quality/       the quality of a graph, without questions
reference_file.py    passages with entities and relationships marked by hand
tuning/              prompts, types and examples for the documents of an index
project_folders.py   the folders of a project that evaluations and tunings write
"""
