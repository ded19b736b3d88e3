"""Resolution: merging of extracted entities that are the same thing under different names.

candidates.py       the entities to resolve, after the decisions of a person are applied
blocking.py         the search for candidate pairs of names that share a key
name_similarity.py  parsed names, the similarity of two of them, and evidence that they differ
scoring.py          the score of a pair, from names, types, documents, neighbours or a model
decisions_file.py   parsing and edits of resolutions.yaml, the decisions of a person
entity_merging.py   merging of matching entities into groups; the tables after it
"""
