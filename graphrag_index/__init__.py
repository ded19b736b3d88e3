"""Index a folder of documents as a graph of entities, communities and reports.

cli/          the command line `graphrag-index`: options, output, exit codes
pipeline/     load, check and run a workflow (start reading in workflow.py); estimate.py
              estimates its cost, history.py manages the versions of an index
step.py       the contract of a step: a function from tables to tables
steps/        the steps; its __init__.py maps each step to its module
readers/      document formats; graph/ reads an existing graph
extraction/   entities, relationships and claims from a language model's replies
nlp/          entities and relationships from grammar and statistics, without a model
resolution/   merging of entities that are the same thing under several names
communities/  hierarchical Leiden, updates of a partition, layout
reports/      community reports, with and without a model
llm/          requests to language models, the ledger of their replies, embeddings
storage/      tables, vectors and versions on disk
schema/       definitions of tables and settings
text/         normalization, languages, sentences, tokens, citations
export/       formats of other programs, one module for each format
microsoft/    import, export and migration of Microsoft GraphRAG
health/       checks of an index
prompts/      prompts, one file for each kind of request
errors.py     exceptions and exit codes
"""

__version__ = "0.1.0"
