"""REST catalogs: databases, tables and views on a server, with Paimon's protocol."""
