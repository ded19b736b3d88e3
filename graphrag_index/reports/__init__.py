"""Community reports: what one holds, and how it is made with a model and without.

row            a report, and the row that it becomes
extractive     written of sentences of the evidence, without a model
context        what a model is shown of a community, within its budget
rendered_rows  the rows of such a context, with their tokens
reply          from a model's reply to a report
citations      which numbers a report may cite
"""
