"""Tables in Spark's own catalogs: interfaces of DataSource V2 implemented in the driver's Python process.

Spark calls the classes of this package through PySpark's gateway while it analyses and plans a query; the files are
then read by Spark's own readers on the executors. ``design/0031`` has the reasons.
"""
