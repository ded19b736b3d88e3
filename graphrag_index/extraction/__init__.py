"""Extraction of entities, relationships and claims with a language model.

prompting.py       the requests about a text unit, and the types requested so far
reply_records.py   records in a reply, parsed tolerantly
graph_reply.py     the schema of a request, and the records of its reply that fit
alignment.py       the positions where a text mentions extracted names
merging.py         entities and relationships of all text units, merged by name
claims.py          claims, each with its position in the text
summarization.py   summaries of several descriptions
"""
