"""What a model finds in a text unit: read from its reply, aligned to the text, folded.

reply       the format of a reply, and the records in it, tolerantly
alignment   where a text names what the model found
graph       entities and relationships of all text units, merged by name
"""
