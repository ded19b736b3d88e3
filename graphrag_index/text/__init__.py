"""Text processing: normalization, languages, sentences, tokens, citations."""
