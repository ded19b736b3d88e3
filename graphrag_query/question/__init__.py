"""A question: its words, the entities that it names, and its conversation."""
