"""Counterpoint and its peers on the same tasks, data and guarantees: `make peers` measures them and writes the page.

`tasks.py` says what is done, on what data and at which guarantee. `with_*.py`, one file for each library, say how it is
done with that library, or why it cannot be. `environments.py` installs each library into an environment of its own;
`measuring.py` runs one task in one environment as a process (`child.py`), ours and the others' in turns. All results
stand in `results.json`, and `page.py` makes docs/benchmarks.md and its figures from that file alone.
"""
