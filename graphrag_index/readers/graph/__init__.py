"""Reader of an existing graph and of the texts that support it. Start with `graph_rows.py`."""
