"""Answers, with or without a model, and the citations in them.

With a model:

written_answer.py   packs rows into a context, asks the model and checks its citations
cited_text.py       resolves the citations that a model writes to sentences of documents

Without a model:

quoted_answer.py    quotes the statements that `graphrag_nlp/answers/rank_statements.py` ranks best
evidence.py         decides whether these statements are evidence enough to answer
cell_answer.py      fills a table of things and periods, a statement for each cell
reader_answer.py    finds a short answer by an extractive reader model

For both:

extractive.py       candidates: sentences of text units that can be cited, ranked for DRIFT search
"""
