"""Microsoft GraphRAG: read its indexes, import them, migrate its projects, export to it."""
