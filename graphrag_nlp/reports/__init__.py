"""Reports on communities, made of sentences of the documents.

1. `candidates` chooses the sentences that a report may quote, before any text is read. 2. `words`
finds the words that set a report apart from the corpus. 3. `ranking` gives each sentence one score:
terms, centrality and lead. 4. `findings` chooses the sentences of the summary and of each finding.
5. `titles` composes titles and headings: names, then a theme. 6. `drafts` does 3 to 5 for the
communities of a shard.

The entry point is `write_reports`: it makes drafts in shards, chooses titles that communities with
one parent do not share, and writes the sentences with citations and positions. Texts are read
between `candidates` and `write_reports`.
"""
