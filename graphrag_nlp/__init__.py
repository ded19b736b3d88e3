"""Names, reports and answers without a model, by rules, statistics and fitted weights.

Nothing here imports another package of the program. Three doors:

- `names.find_names.find_mentions`: the entities of documents, with their types and mentions;
- `reports.write_reports.write_reports`: reports on communities, made of sentences of the documents;
- `answers`: answers to questions, made of sentences of the documents.

`text/` is for everyone: languages, sentences, normalization, word lists.
"""
