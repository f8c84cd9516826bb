"""Streaming reads: where a stream starts, where each micro-batch ends, and which files it reads."""
