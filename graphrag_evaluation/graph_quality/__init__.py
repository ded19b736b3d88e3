"""Quality of the graph of an index, without questions and without a model.

graph_measurement.py     all measures of an index
graph_figures.py         the measures, their meanings, and one measured figure
grounding.py             whether text units hold the names that they are evidence for
report_claims.py         whether cited rows state the sentences of a report
community_stability.py   communities of resampled documents, compared with the stored ones
reference.py             a marked file or another index, and the documents in common
marked_passages.py       passages marked by hand
stated_graph.py          what an index states about passages
reference_comparison.py  precision, recall and F1 of what both state
"""
