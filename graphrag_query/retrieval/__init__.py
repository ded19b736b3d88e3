"""Retrieval: the opened index and the rows that fit a question."""
