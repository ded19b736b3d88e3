"""Prompts, types and examples for the documents of an index, measured on held-out ones.

corpus_sample.py     passages that cover the documents
known_records.py     entities and relationships of passages that are known without the prompt
extraction_score.py  score of the reply to an extraction request, and what it lacks
prompt_trial.py      a prompt with its types, and its requests about passages, known replies
tuned_prompt.py      types, examples and text of a prompt for these documents
tuning_run.py        the whole tuning, from the sample to the comparison before and after
proposed_files.py    the files of a proposal, their differences, and their installation
"""
