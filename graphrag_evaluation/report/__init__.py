"""The report of an evaluation: what a run of `evaluate` leaves behind.

evaluation_record.py   the content of `evaluation.json`: how it is made and read
evaluation_page.py     the page `evaluation.html`, and the reports of a project
"""
