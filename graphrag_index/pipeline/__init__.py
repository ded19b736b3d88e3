"""Loading, checking and running of workflows."""
