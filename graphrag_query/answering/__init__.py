"""Answers: contexts, model calls, sentence selection and citations."""
