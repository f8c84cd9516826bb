"""Casts of columns between types, with Paimon's rules."""
