"""Load, check and run a workflow."""
