"""Retrieval: the opened index, and the selection of rows for a question."""
