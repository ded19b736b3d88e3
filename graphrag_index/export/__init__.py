"""An index in the formats of other programs.

exported_graph.py   the graph that filters leave, which all formats share
text_rows.py        rows as lines of text, which the text formats share
graph_files.py      GraphML, GEXF and node-link JSON
graph_databases.py  the whole index as a property graph: Neo4j, Cypher, and Parquet for Kùzu
ntriples.py         the same as RDF
graph_page.py       a page that draws the graph
"""
