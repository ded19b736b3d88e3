"""Prompts, types and examples for the documents of an index, measured on held-out ones.

corpus_sample.py     passages that cover the documents, and their known entities and relationships
prompt_trial.py      a prompt with its types, its requests about passages, scores of replies
tuned_prompt.py      types, examples and text of a prompt for these documents
tuning_run.py        the whole tuning, from the sample to the files of a proposal
"""
