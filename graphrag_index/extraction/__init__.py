"""Extraction of entities, relationships and claims with a language model.

prompting.py       the requests about a text unit
schema_history.py  the types requested so far, and those still to request
reply_records.py   records in a reply, parsed tolerantly
graph_reply.py     the format of a reply, and the records that fit text and schema
alignment.py       the positions where a text mentions extracted names
merging.py         entities and relationships of all text units, merged by name
claims.py          claims, each with its position in the text
summarization.py   summaries of several descriptions
"""
