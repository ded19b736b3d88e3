"""A project of Microsoft GraphRAG made one of ours: settings, keys, prompts and paid replies.

command.py    what `graphrag-index init --from` prints
project.py    all of it, written into a folder: start reading here
reading.py    its settings file and .env, of version 1, 2 or 3
settings.py   from its settings to ours, with a line for each key (carried.py)
keys.py       the table: which of its keys are which of ours, and what becomes of the others
documents.py  where its documents lie, and which are read
models.py     its language models and embedding models; model_keys.py, the table of their keys
prompts.py    its prompt files, with the places of ours
stored.py     its cache of replies, by the requests that they answer
cache.py      those replies into our ledger; vectors.py, those of embedding models
"""
