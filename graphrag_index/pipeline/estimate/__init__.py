"""What a run would ask of models, and what that would cost; nothing is sent.

cost       runs the steps in a temporary folder, scales what was counted, and prints the table
counting   stand in for models and count what they are asked
answers    what a model might answer
past       what was asked before, read from the ledger, which stays as it is
sample     the documents that stand for all, and how the graph grows beyond them
"""
