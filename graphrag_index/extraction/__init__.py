"""What a model finds in a text unit: read from its reply, aligned to the text, folded.

schemas     which types were asked for, and which are left to ask for
asking      the requests about a text unit, in words
reply       the format of a reply, and the records in it, tolerantly
added       the same of a reply to a request for added types
narrowing   what stays of replies when types are taken out
alignment   where a text names what the model found
graph       entities and relationships of all text units, merged by name
describing  the requests about several descriptions of one thing
earlier     what the last run read from replies, where nothing has changed
"""
