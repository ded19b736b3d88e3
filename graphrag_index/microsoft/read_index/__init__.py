"""The index of Microsoft GraphRAG, version 0 to 3, read as ours, without copying it.

    from graphrag_index.microsoft.read_index.index_tables import MicrosoftIndex
    index = MicrosoftIndex(folder)       # TableError: what is missing or cut off, and what to do
    index.tables["entities"]             # LazyFrame with all columns of our table, in our order
    index.vectors["entity_description"]  # `.dimension`, `.batches()` of `id` and `vector`

`tables` has documents, text_units, entities, relationships, communities and mentions, and
community_reports and covariates where there are files of them. Rows, ids, numbers and the order
of rows are those of the files. `index.places.text_units["is_found"]` tells which text units stand
in their documents; those that do not count their characters from 0.

Numbers: ours are row numbers, and citations name them. Up to version 1 `human_readable_id` counts
from 1, and an id may come twice. `numbered(index.tables)` gives every row its row number, changes
what the reports cite accordingly, and tells ids apart; where all is so already it changes nothing.

files.py      where the files are, and their names, columns and types
tables.py     the tables as ours
derived.py    what they do not say, found in one pass over the text units
places.py     where a text unit stands in its document, and what it names where
hierarchy.py  communities, whichever version wrote them
numbers.py    row numbers for those that citations name
vectors.py    vectors from LanceDB, from snapshots and from columns
"""
