"""Storage of tables, vectors and versions on disk."""
