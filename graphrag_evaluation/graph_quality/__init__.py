"""Quality of the graph of an index, without questions and without a model.

graph_measurement.py     all measures of an index
graph_figures.py         the measures, their meanings, and one measured figure
grounding.py             whether texts hold the names, quotations and sentences that rest on them
reference_comparison.py  precision, recall and F1 against another index of the same documents
"""
