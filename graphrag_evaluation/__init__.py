"""Evaluation of an index and its searches on questions with known answers, and tuning.

CONTRIBUTING.md maps its files.
"""
