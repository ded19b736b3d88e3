"""Exports of an index to the formats of other programs.

exported_graph.py   Select the graph with filters, and format its rows as lines of text.
graph_files.py      Write GraphML, GEXF and node-link JSON.
graph_databases.py  Write the whole index as a property graph: Neo4j, Cypher, Kùzu and RDF.
graph_page.py       Write an HTML page that draws the graph.
"""
