"""Look an index over, ours or Microsoft's: what is broken, what is missing, and its figures.

opened.py      an index opened for looking over, whoever made it
own.py         our own at one version; microsoft.py: a folder of another program's tables
checks.py      the list of checks, and what their limits say: start reading here
references.py  ids that nothing has; duplicates.py: what is there twice
coverage.py    what no community and no report speaks of; communities that are too large
reports.py     reports that say nothing, and citations that lead nowhere
vectors.py     vectors that are missing, empty or of an earlier text
search_tables.py  what searches look up, against the tables that it is made of
figures.py     the graph in numbers, counts by document and language
as_text.py, as_page.py, plots.py: what a person reads
"""
