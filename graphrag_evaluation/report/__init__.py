"""The report of an evaluation: what a run of `evaluate` leaves behind.

evaluation_record.py   the content of `evaluation.json`, and its checked reader
record_results.py      the record of the results of systems, with the texts of passages
evaluation_page.py     the page `evaluation.html`, and the reports of a project
"""
