"""Settings of a project, mirrored from settings.yaml."""
