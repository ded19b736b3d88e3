"""Reports on communities, written by a model or composed of sentences from documents."""
