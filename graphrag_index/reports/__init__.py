"""Community reports: what one holds, and how it is made with a model and without.

row            a report, and the row that it becomes
extractive     written of sentences of the evidence, without a model
context        what a model is shown of a community, within its budget
reply          from a model's reply to a report
"""
