"""Text processing: languages, sentences, noun phrases, headlines, values, tokens, citations."""
