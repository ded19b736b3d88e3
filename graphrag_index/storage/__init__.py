"""Storage of tables, vectors and versions on disk.

versions.py         versions of an index, and the pointer to the current version
table_store.py      the output folder: tables of each version, journal, clean-up
table_writer.py     writers of Parquet and memory-mapped tables
mapped_table.py     memory-mapped tables, for searches
search_tables.py    tables that searches look rows up in, and topics of text units
vector_store.py     vectors, their indexes, and searches of vectors and words in LanceDB
lancedb_stubs.py    stubs of imports of LanceDB, for a fast start
memo.py             rows of the last version that a step reuses
partitions.py       rows of a step that are split into partitions
atomic.py           files that are written as a whole or not at all
bucket.py           objects in a bucket, with conditional writing; the folder for copies of them
working_copy.py     an output folder in a bucket: a copy on this machine, and its commits
"""
