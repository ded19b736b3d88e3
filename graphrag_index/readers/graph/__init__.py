"""Reader of a graph that the user provides, and of passages that prove it; see `graph_rows.py`."""
