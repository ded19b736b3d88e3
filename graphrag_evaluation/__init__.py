"""Evaluation of an index and its searches on questions with known answers, and tuning.

CONTRIBUTING.md maps its files.
"""

# Folders of a project: reports of evaluations, and proposals of `tune`, each with the replies of
# models to them.
EVALUATIONS, TUNING = "evaluations", "tuning"
