"""Tables, vectors and versions on disk."""
