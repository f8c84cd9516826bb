"""Paimon's REST catalog: requests to its server, and the storage of a table whose snapshots the server decides."""
