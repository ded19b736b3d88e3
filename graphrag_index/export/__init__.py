"""An index in the formats of other programs.

exported_graph.py   the graph that filters leave, and its rows as lines of text
graph_files.py      GraphML, GEXF and node-link JSON
graph_databases.py  the whole index as a property graph: Neo4j, Cypher, Parquet for Kùzu, and RDF
graph_page.py       a page that draws the graph
"""
