"""Names to locations and schemas: create, load, alter."""
