"""Buffers for counters under zCDP without a horizon: made by docs/make_endless_blt.py.

A buffer is (m, s, p, q): it decays by 1 - m/2^s a step, and weighs p/2^q.

>>> len(ENDLESS)
6
"""

ENDLESS: tuple[tuple[int, int, int, int], ...] = (
    (140, 21, 139, 15),
    (154, 25, 138, 17),
    (216, 30, 162, 19),
    (222, 14, 130, 10),
    (228, 10, 165, 9),
    (234, 18, 251, 14),
)
