"""Checks of an index, ours or of Microsoft GraphRAG; begin with `checks.py`."""
