"""A question: its words, the entities it names, the conversation it belongs to."""
