"""Definitions of all tables and settings of an index."""
