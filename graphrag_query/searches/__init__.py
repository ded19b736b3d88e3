"""The searches, one file each."""
