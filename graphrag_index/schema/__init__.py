"""Tables and settings of an index, each defined once."""
