"""Reader of a graph that the user provides, with the passages that prove it.

graph_rows.py      the files of the settings, their columns renamed to fields: start reading here
graph_columns.py   which column holds which field, and lists inside of cells
tabular.py         .csv, .tsv and .parquet files
graphml_file.py    .graphml files
given_graph.py     entities, deduplicated by title, and relationships between their numbers
graph_passages.py  text units that the user provides
row_evidence.py    text units made of rows that name no text unit
graph_evidence.py  collects documents, text units, mentions and evidence
"""
