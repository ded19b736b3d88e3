"""Reader of a graph that the user provides, with the passages that prove it.

graph_rows.py      the files of the settings, their columns renamed to fields: start reading here
given_files.py     .csv, .tsv, .parquet and .graphml files
given_graph.py     entities, deduplicated by title, and relationships between their numbers
graph_evidence.py  documents, text units, mentions and evidence; text units that the user provides
row_evidence.py    documents and text units made of rows that name no text unit
"""
