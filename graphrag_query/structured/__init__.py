"""Questions in SQL and Cypher, and those for which a model writes the query.

tables.py             which tables can be asked, and where they lie
schema.py             what they hold, in words: for people and for a model
sql.py, cypher.py     a query, checked and run
read_only.py          which queries are refused before anything reads them
limits.py             how long a query may take, and how much it may return
sandbox.py            runs a query in a process of its own, which can be ended at any moment
worker.py             what runs there
engine_duckdb.py      SQL, where DuckDB is installed
engine_polars.py      SQL, where it is not
engine_cypher.py      Cypher, by LadybugDB or Kùzu
graph_schema.py       what that graph is made of; graph_build.py makes its database
result.py             the rows of a query
structured_search.py  a model writes the query, and the answer from its rows
written_query.py      how it is asked for the query; samples.py, what it is shown before
identified_rows.py    which rows of the index the rows of a query are, to cite them

What a query reads is the index and nothing else; it writes nothing.
"""
