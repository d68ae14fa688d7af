"""The noises of counters: matrices and trees over time, what is drawn for them, and how large it gets."""
