"""Storage of tables, vectors and versions on disk.

versions.py         versions of an index, and the pointer to the current version
table_store.py      the output folder: tables of each version, journal, clean-up
table_writer.py     writers of Parquet and memory-mapped tables
mapped_table.py     memory-mapped tables, for searches
search_tables.py    tables that searches look rows up in
vector_store.py     searches of vectors and words in LanceDB
vector_writer.py    vectors and their indexes
lancedb_stubs.py    stubs of imports of LanceDB, for a fast start
memo.py             rows of the last version that a step reuses
atomic.py           files that are written as a whole or not at all
"""
