"""Export an index in the layout of Microsoft GraphRAG 3."""
