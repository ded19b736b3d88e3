"""Which of the extracted entities are one thing under several names.

names.py           a name, taken apart: words, numbers, forms that say nothing
once.py            what a name finds out about itself, once
blocking.py        pairs of names that are worth a look, without looking at all pairs
comparing.py       how alike two names are, and what keeps them apart
scoring.py         the same with types, documents and neighbours
grouping.py        from pairs to groups, each around a centre
asking.py          a model decides about the doubtful pairs
decisions_file.py  what a person has decided: resolutions.yaml
decisions_edit.py  writing a decision into that file
assigning.py       from decisions to the number and title of each entity
applying.py        the tables of the extraction, seen through these numbers
command.py         what `graphrag-index resolve` prints and asks
"""
