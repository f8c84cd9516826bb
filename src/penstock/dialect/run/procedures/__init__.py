"""``CALL sys.…``: the procedures of Paimon, as calls of the API."""
