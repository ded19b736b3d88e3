"""Quality of the graph of an index, without questions and without a model.

graph_measurement.py     all measures of an index
graph_figures.py         the measures, their meanings, and one measured figure
grounding.py             whether texts hold the names, quotations and sentences that rest on them
community_stability.py   communities of resampled documents, compared with the stored ones
reference.py             a marked file or another index, and the documents in common
marked_passages.py       passages marked by hand
stated_graph.py          what an index states about passages
reference_comparison.py  precision, recall and F1 of what both state
"""
