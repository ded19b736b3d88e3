"""Quality of the graph of an index, without questions and without a model.

graph_measurement.py     all measures of an index grounding.py             the measures and their
meanings; whether texts state what the graph says reference_comparison.py  precision, recall and F1
against another index of the same documents
"""
