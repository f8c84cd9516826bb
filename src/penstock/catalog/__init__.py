"""Catalogs: resolve names to locations and schemas; create, load and alter tables."""
