"""Tables on object stores: S3, Azure Blob, and servers with compatible APIs."""
