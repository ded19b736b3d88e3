"""Answers and graphs as text, notebooks and pictures."""
