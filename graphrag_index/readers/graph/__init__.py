"""Reader of a given graph and of the passages that prove it; begin with `graph_rows.py`."""
