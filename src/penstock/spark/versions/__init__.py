"""What differs between the versions of Spark; no other package asks for a version."""
