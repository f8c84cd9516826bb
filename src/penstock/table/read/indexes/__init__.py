"""Indexes of data files that other engines write."""
