"""UPDATE, MERGE and DELETE of rows through Spark's catalog."""
