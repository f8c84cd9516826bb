"""Manifests: entries, their files, statistics."""
