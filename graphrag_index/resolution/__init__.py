"""Resolution: merging of extracted entities that are the same thing under different names.

candidates.py       the entities to resolve, after the decisions of a person are applied
parsed_name.py      parsed names: words, numbers, optional parts
blocking.py         the search for candidate pairs of names that share a key
name_similarity.py  the similarity of two names, and evidence that they differ
scoring.py          the score of a pair, from names, types, documents, neighbours or a model
decisions_file.py   parsing of resolutions.yaml, the decisions of a person
decisions_edit.py   writing of decisions into resolutions.yaml; the tables they are about
entity_merging.py   merging of matching entities into groups
table_rewriter.py   the extracted tables after resolution
"""
