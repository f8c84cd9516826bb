"""Benchmarks: Penstock compared with its peers, paired in one run. Start with ``make bench``; see README.md."""
