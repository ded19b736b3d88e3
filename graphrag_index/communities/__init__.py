"""From a partition of the graph to the table `communities`, and from one version to the next.

previous.py  what the last run found, in the numbers of this one
islands.py   small components that nothing links, gathered
lineage.py   which community was which, and what became of it
rows.py      the rows of the table
"""
