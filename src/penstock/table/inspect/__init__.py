"""System tables, checks of files, and explanations of reads."""
