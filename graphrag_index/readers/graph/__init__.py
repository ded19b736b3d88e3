"""A graph that a user brings: its files as tables, and its rows as the evidence of themselves.

columns.py        which column is what
rows.py           the rows of a file, whatever its type
tabular.py        .csv, .tsv and .parquet
lists.py          lists that stand in one cell
graphml.py        .graphml
entities.py       the entities, each once
relationships.py  the relationships, by the numbers of their ends
evidence.py       documents, text units and mentions, gathered as they are made
records.py        text units made of rows
passages.py       text units that the user gives
"""
