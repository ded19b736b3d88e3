"""Checks of an index, ours or Microsoft's: defects, gaps and statistics.

checks.py         the list of checks and their limits: start reading here
checked_index.py  the opened index, and the form of findings
row_checks.py, report_checks.py, vector_checks.py  the checks
index_statistics.py  graph measures, counts by document and language
health_text.py, health_page.py  the report as text, JSON and a page
"""
