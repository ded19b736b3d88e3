"""The versions of an index: what they are, how they differ, going back, and forgetting."""
