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
partitions.py       rows of a step that are split into partitions
text_unit_topics.py which entities a text unit names, and which it is about
atomic.py           files that are written as a whole or not at all
bucket.py           objects in a bucket, with conditional writing
working_copy.py     an output folder in a bucket: a copy on this machine, and commits
commits.py          commits of an index in a bucket, and the pointer to the newest one
fetched_folder.py   a folder of documents in a bucket, fetched to this machine
user_cache.py       the user's cache folder: downloaded models, and copies of buckets
"""
