"""A catalog whose names a REST server keeps: databases and tables by Paimon's protocol."""
