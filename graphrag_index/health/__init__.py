"""Checks of our index or an index of Microsoft GraphRAG; `checks.check_index` runs them."""
