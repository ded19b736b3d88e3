"""Resolution: extracted entities that are one thing under several names.

candidates.py       the entities to resolve, after the decisions of a person; split names
parsed_name.py      a name, parsed: words, numbers, optional parts
blocking.py         candidate pairs that share a key, instead of all pairs
name_similarity.py  similarity of two names, and signs that they are not one
scoring.py          the same with types, documents, neighbours, or the answer of a model
decisions_file.py   the decisions of a person: resolutions.yaml
decisions_edit.py   writing a decision into that file
apply.py            from pairs to groups, and the extracted tables after resolution
"""
