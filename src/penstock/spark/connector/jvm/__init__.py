"""The part of the connector that runs in the driver's JVM, so that many objects need only one call from Python."""
