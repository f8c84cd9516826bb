"""The part of the connector that runs in the JVM of the driver, so that many objects take one call from Python."""
