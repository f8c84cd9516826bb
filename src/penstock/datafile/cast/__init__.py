"""Casts of columns between types, as Paimon casts."""
