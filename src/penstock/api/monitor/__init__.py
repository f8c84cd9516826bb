"""Interfaces for monitoring systems."""
