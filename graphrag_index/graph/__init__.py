"""Algorithms on the entity graph: arrays of numbers in, arrays of numbers out."""
