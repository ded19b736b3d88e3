"""Jobs: runs that update an index, and the parsing of uploaded files.

job_store.py    the queue of an index, in SQLite beside its ledger
job_runner.py   one thread for each index: starts the process of each run, and watches it
run_process.py  the process of one run
parse_check.py  the process that parses an uploaded file before it is accepted
"""
