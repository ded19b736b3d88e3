"""Judgements of answers by a language model, with evidence that is checked.

judge.py     a model as judge: its requests, its scores, what was not readable
criteria.py  what is asked of one answer or of two: the requests and the reading of the replies
"""
