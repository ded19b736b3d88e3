"""Community reports: what one holds, and how it is made with a model and without.

row            a report, and the row that it becomes
extractive     written of sentences of the evidence, without a model
context        what a model is shown of a community, within its budget
reply          from a model's reply to a report
written        a report that cites by places of its own, whatever the index numbers
evidence       what the reports rest on, as hashes
earlier        which reports of the last run stay
writing        the reports that are there so far, and the rows that they become
"""
