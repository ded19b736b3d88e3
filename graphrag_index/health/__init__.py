"""Checks of an index, ours or Microsoft's: defects, gaps and statistics; start at `checks.py`."""
