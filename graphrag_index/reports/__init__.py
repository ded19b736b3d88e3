"""Reports on communities, written by a model or extracted from sentences."""
