"""Extraction of entities and relationships with a language model.

prompting.py       builds the requests about a text unit, and stores the requested types
graph_reply.py     the types in a request, and the records in its reply
alignment.py       finds the positions where a text mentions the extracted names
merging.py         the records of each text unit as a table, and their merging by name
"""
