"""Evaluation of an index and its searches on questions with known answers, and tuning.

questions.py         questions with what is known about their answers, and files of them
generation/          questions made from an index
systems.py           the systems that are compared: searches of indexes with settings
runs.py              questions asked to systems, with the scores of what came back
retrieval_scores.py  the contexts and passages of a search; recall, nDCG and MRR
coverage.py          whether texts state statements, by their words
answer_scores.py     the outcome of an answer, its citations and its support
judging/             judgements of answers by a language model
statistics.py        intervals, paired tests, correction for several comparisons
summary.py           the measures, means of systems, and the differences between systems
report/              the report of an evaluation, and its page
graph_quality/       the quality of a graph, without questions
reference_file.py    passages with entities and relationships marked by hand
tuning/              prompts, types and examples for the documents of an index
project_folders.py   the folders of a project that evaluations and tunings write
"""
