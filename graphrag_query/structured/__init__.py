"""Queries in SQL and Cypher, and questions for which a model writes the query.

A query can read the index, but no other file. It cannot change anything.
"""
