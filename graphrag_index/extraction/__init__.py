"""Extraction of entities, relationships and claims with a language model.

prompting.py       builds the requests about a text unit, and stores the requested types
reply_records.py   parses the records in a reply, and tolerates common mistakes
graph_reply.py     the types in a request, and the validation of the records in its reply
alignment.py       finds the positions where a text mentions the extracted names
findings.py        the records of the replies about each text unit, as a table
merging.py         merges the entities and relationships of all text units by name
claims.py          parses claims, and finds the evidence of a claim in the text
summarization.py   builds the requests that summarize several descriptions
"""
