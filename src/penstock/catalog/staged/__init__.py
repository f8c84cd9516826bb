"""Definitions of tables that take effect together with rows."""
