"""Tables on object stores: S3, Azure Blob, and servers that speak as they do."""
