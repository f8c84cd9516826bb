"""Fuzz every decoder with randomly damaged files: it must not hang, crash, or raise errors of other libraries."""
