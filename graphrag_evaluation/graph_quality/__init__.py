"""Quality of the graph of an index, without questions and without a model.

graph_measurement.py     all measures of an index
graph_figures.py         the measures, their meanings, and one measured figure
grounding.py             whether passages hold the names that they are evidence for
report_claims.py         whether cited rows, and recorded spans, state the sentences of a report
reference.py             a marked file or another index, and the documents in common
stated_graph.py          what an index or a marked file states about passages
reference_comparison.py  precision, recall and F1 of what both state
community_stability.py   communities of resampled documents, compared with the stored ones
"""
