"""Index a folder of documents as a graph of entities, communities and reports.

__main__.py   the command line `graphrag-index`
workflow.py   load and check a workflow: start reading here
run.py        run the steps whose inputs changed, then move the pointer
dry_run.py    what a run would do; plan.py, which steps; changes.py, what changed in the input
history/      the versions of an index: how they differ, going back, forgetting
estimate/     what it would ask of models, and the price
step.py       what a step is: a function from tables to tables
input.py      where a workflow reads, and that it is there
steps/        the steps, one file each
readers/      the formats of documents
given_graph/  a graph that a user brings, from its files
earlier_text_units.py   the text units of documents that are as they were
linguistics/  names, terms and relationships without a model
extraction/   entities, relationships and claims from a model's replies
resolution/   which entities are one thing under several names
graph/        hierarchical Leiden, keeping its parts on an update, and the layout of a drawing
communities/  from that partition to the table, and from one version to the next
reports/      community reports, with a model and without
from_microsoft/ a project of Microsoft's made one of ours: settings, prompts, replies
importing.py  an index of Microsoft's made one of ours, with imports/: what it is made of
export/       an index in the forms of other programs, one module each
check/        the health of an index, ours or Microsoft's
prompts/      what models are asked, one file for each kind of request
core/         what this package and `graphrag_query` stand on
"""

__version__ = "0.1.0"
