"""Text processing: normalization, languages, sentences, tokens and citations."""
