"""Communities of the entity graph: detection, update for a new version, and table rows."""
