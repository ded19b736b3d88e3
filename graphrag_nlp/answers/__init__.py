"""Answers without a model: sentences that cover a question on all documents, and counts."""
