"""The report of an evaluation: the files that a run of `evaluate` writes.

evaluation_record.py   the content of `evaluation.json`: how it is made and read
evaluation_page.py     the page `evaluation.html`, and the reports of a project
"""
