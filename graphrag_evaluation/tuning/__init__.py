"""Prompts for the documents of an index.

corpus_sample.py   passages that cover the documents, and what the index states about them
tuned_prompt.py    types, examples, a description of the documents, and the prompts with them
"""
