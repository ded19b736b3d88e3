"""Exports of an index to the formats of other programs.

exported_graph.py   Select the graph with filters, and format its rows as lines of text.
graph_files.py      Write GraphML, GEXF and node-link JSON; the whole index for graph databases.
explorer_page.py    Write the explorer as an HTML page that holds the part of an index that fits.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from graphrag_index.export import graph_files
from graphrag_index.export.exported_graph import ExportedGraph

# By format: the function that writes the graph to a path. It returns lines to print, with the
# placeholder TARGET for the path.
WRITERS: Mapping[str, Callable[[ExportedGraph, Path], list[str]]] = {
    "graphml": graph_files.write_graphml,
    "gexf": graph_files.write_gexf,
    "node-link": graph_files.write_node_link,
    "neo4j": graph_files.write_neo4j,
    "cypher": graph_files.write_cypher,
    "parquet": graph_files.write_kuzu,
}
# Names of the files of a format that writes a folder.
FOLDER_FILES = {"neo4j": graph_files.NEO4J_FILES, "parquet": graph_files.KUZU_FILES}
