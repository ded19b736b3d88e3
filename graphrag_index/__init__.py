"""Index a folder of documents as a graph of entities, communities and reports.

CONTRIBUTING.md maps its files.
"""

__version__ = "0.1.0"
