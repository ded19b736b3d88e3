"""Answers, with or without a model, and the citations in them.

written_answer.py   with a model: packs rows into a context, asks, and checks the citations
cited_text.py       resolves the citations that a model writes to sentences of documents
quoted_answer.py    without: quotes what `graphrag_nlp/answers/rank_statements.py` ranks best
evidence.py         decides whether the quoted statements are evidence enough to answer
cell_answer.py      fills a table of things and periods, a statement for each cell
reader_answer.py    finds a short answer by an extractive reader model
extractive.py       candidates: sentences that can be cited, ranked here for DRIFT search only
"""
