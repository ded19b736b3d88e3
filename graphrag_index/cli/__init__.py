"""Commands of graphrag-index: they parse arguments, print and exit."""
