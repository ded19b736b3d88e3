"""An index, written in the forms that other programs read: one module a form.

What forms share: graph.py is the graph that filters leave, property_graph.py the whole index as
a graph for databases, text.py how rows become text, target.py how a target comes to be whole.
"""
