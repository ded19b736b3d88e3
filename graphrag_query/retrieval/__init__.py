"""Retrieval: the selection of rows for a question."""
