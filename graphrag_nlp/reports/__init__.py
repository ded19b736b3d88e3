"""Reports on communities, made of sentences of the documents.

1. `candidates` chooses the sentences that a report may quote, by their members and places.
2. `words` finds the words that set a report apart from the corpus.
3. `ranking` gives each sentence one score: terms, centrality and lead.
4. `findings` chooses the sentences of the summary and of each finding.
5. `titles` composes titles and headings: names, then a theme.
6. `drafts` does 3 to 5 for the communities of a shard.

The door is `write_reports`: it has drafts made in shards, chooses titles that siblings do not
share, and writes the sentences with citations and places. Texts are read between `candidates` and
`write_reports`.
"""
