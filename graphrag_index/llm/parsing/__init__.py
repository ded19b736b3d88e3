"""Tolerant parsing of model replies."""
