"""Index a folder of documents as a graph of entities, communities and reports.

cli/          the command line `graphrag-index`: options, output, exit codes
pipeline/     load, check and run a workflow (workflow.py: start reading here); estimate.py for
              its price, history.py for the versions of an index
step.py       the contract of a step: a function from tables to tables
steps/        the steps; its __init__.py names the module of each
readers/      document formats; graph/ for an existing graph
extraction/   entities, relationships and claims from a language model's replies
nlp/          the same without a model
resolution/   several names of one entity
communities/  hierarchical Leiden, updates of a partition, layout
reports/      community reports, with and without a model
llm/          requests to language models, their ledger, embeddings
storage/      tables, vectors and versions on disk
schema/       definitions of tables and settings
text/         normalization, languages, sentences, tokens, citations
export/       formats of other programs, one module each
microsoft/    import, export and migration of Microsoft GraphRAG
health/       checks of an index
prompts/      prompts, one file for each kind of request
errors.py     the errors and exit codes
"""

__version__ = "0.1.0"
