"""Prompts for the documents of an index.

corpus_sample.py   passages that cover the documents, and what the index states about them
tuned_prompt.py    types, examples and the text of the proposed prompts
tuning_run.py      the requests of a tuning, and the files that it writes
"""
