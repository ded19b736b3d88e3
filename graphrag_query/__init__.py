"""Ask an index."""
