"""The opened index: its tables, vectors, links and filters."""
