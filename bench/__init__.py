"""Benchmarks: our work next to that of its peers, paired in one run. Start with ``make bench``; see README.md."""
