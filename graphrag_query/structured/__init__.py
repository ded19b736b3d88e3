"""Questions in SQL and Cypher, and questions for which a model writes the query.

A query reads the index and nothing else, and writes nothing.
"""
