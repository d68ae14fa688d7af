"""What is done: each task with its data, its guarantee, and what counts as its error.

Nothing here depends on a library; the parameters are formulas, so that every library gets the same ones.

>>> [task.name for task in TASKS if task.sizes == (10**6, 10**7)]
['group_by']
>>> sum(epsilon for epsilon, _ in different_losses(10)) < 4
True
"""

from typing import NamedTuple

GOLDEN = 0.6180339887498949
DELTA = 1e-6
KEYS = [f"k{n}" for n in range(20)]
CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
"""The carriers of the package's public list of airlines."""
ROWS_PER_UNIT = 10
ANSWERS = 1000
"""How often a stream is asked for its count, at even distances."""
FAR_ITEMS, DEVIATIONS = 8, 64
FITTING = 1000
"""How many launches fit into the budget that eight threads share."""
THREADS, TRIES = 8, 130
LISTS = ("different_losses", "gaussian_losses", "sampled_gaussians")
"""The tasks whose answer is an epsilon, which is compared with the smallest."""
FIRST = {**dict.fromkeys(LISTS, 20), "separated": 2**9}
"""The size of the first run, which does not count, where a library may remember what it has computed once."""


class Task(NamedTuple):
    """A task: what it is called, what is done at which guarantee, its sizes, and what its error is."""

    name: str
    title: str
    says: str
    sizes: tuple[int, ...] = (1,)
    size_is: str = ""
    error: str = ""
    rounds: int = 3
    with_data: bool = False
    """Whether preparing reads data, and counts; otherwise it only writes parameters down."""


TASKS = [
    Task(
        "different_losses",
        "Accounting: different (epsilon, delta) losses",
        "The epsilon at delta = 1e-6 of n losses that are fixed in advance and all different: the epsilons are spread"
        " evenly between 0.5 and 1.5 times 1/sqrt(n), each delta is 1e-7/n.",
        (10, 10**2, 10**3, 10**4, 10**5),
        "losses",
        "the epsilon found, by the smallest that a library proved",
    ),
    Task(
        "gaussian_losses",
        "Accounting: Gaussian mechanisms",
        "The epsilon at delta = 1e-6 of n Gaussian mechanisms of ten noise levels in turn: sigma is sqrt(n) times 1,"
        " 1.1, ... 1.9 times the sensitivity.",
        (10, 10**2, 10**3, 10**4, 10**5),
        "mechanisms",
        "the epsilon found, by the smallest that a library proved",
    ),
    Task(
        "sampled_gaussians",
        "Accounting: the steps of DP-SGD",
        "The epsilon at delta = 1e-6 of n steps of the Gaussian mechanism (sigma 1), each on a fresh Poisson sample at"
        " rate 0.01, for neighbours that differ by one unit.",
        (10, 10**2, 10**3, 10**4, 10**5),
        "steps",
        "the epsilon found, by the smallest that a library proved",
    ),
    Task(
        "filter",
        "A launch after many launches",
        "n mechanisms of epsilon 0.001 have been launched under one pure budget and asked once; what is measured is 20"
        " more.",
        (10**3, 10**4, 10**5),
        "launches before",
    ),
    Task(
        "interleaved",
        "Two interactive mechanisms, asked in turns",
        "Two mechanisms under one budget, each of which answers adaptive asks with Laplace noise, are asked in turns,"
        " 500 times each; each ask costs epsilon 0.001.",
    ),
    Task(
        "threads",
        "Eight threads on one budget",
        f"Eight threads share a pure budget into which {FITTING} launches of epsilon 0.001 fit, each with one answer;"
        f" each thread tries {TRIES}.",
        error="launches admitted beyond what fits; below 0, launches that failed or were refused although they fit",
    ),
    Task(
        "stream",
        "A running count of a stream, zCDP",
        f"n items of 0 or 1 arrive, and the running count is asked {ANSWERS} times at even distances; neighbours differ"
        " in one item, and all answers together are 0.5-zCDP. The length is known in advance.",
        (10**4, 10**5, 10**6),
        "items",
        "root mean square error of the answers",
    ),
    Task(
        "separated",
        "The noise of a running count, units of far items",
        f"n items arrive, of which a unit has at most {FAR_ITEMS}, n/{FAR_ITEMS} or more from each other; all answers"
        f" together are 0.5-zCDP. The standard deviations of the running count at {DEVIATIONS} even distances:"
        " computed, nothing is drawn. Finding the noise for these numbers counts. Ours keeps three or four numbers,"
        f" jax-privacy's banded matrix n/{FAR_ITEMS}.",
        (2**10, 2**12),
        "items",
        "root mean square of the standard deviations, exact",
    ),
    Task(
        "group_by",
        "Sums of twenty groups",
        "A sum of a column between 0 and 1000 for each of 20 known keys, from a Parquet file of n rows; each row is"
        " protected by itself, epsilon 1.",
        (10**6, 10**7),
        "rows",
        "root mean square error of the sums",
        rounds=2,
        with_data=True,
    ),
    Task(
        "group_by_units",
        "The same sums, units of ten rows",
        f"The same file and sums, where a unit with at most {ROWS_PER_UNIT} rows is protected, and the library enforces"
        " that bound; epsilon 1.",
        (10**6,),
        "rows",
        "root mean square error of the sums",
        rounds=2,
        with_data=True,
    ),
    Task(
        "counts",
        "Flights: counts by carrier",
        "The number of flights of each of 16 carriers, epsilon 0.1, each flight protected by itself.",
        error="root mean square error of the counts",
        rounds=2,
        with_data=True,
    ),
    Task(
        "means",
        "Flights: mean delay by carrier",
        "The mean arrival delay of each of 16 carriers, between -60 and 600 minutes, epsilon 0.5.",
        error="mean absolute error of the means, in minutes",
        rounds=2,
        with_data=True,
    ),
    Task(
        "medians",
        "Flights: median delay by carrier",
        "The median arrival delay of each of 16 carriers, between -60 and 600 minutes, epsilon 0.5.",
        error="mean absolute error of the medians, in minutes",
        rounds=2,
        with_data=True,
    ),
    Task(
        "keys",
        "Flights: destinations, names unknown",
        "Which destinations there are (105), where none is known in advance: (0.25, 1e-7).",
        error="destinations not found",
        rounds=2,
        with_data=True,
    ),
]
"""All tasks but those of the gallery, which are the cells of its scripts."""


def different_losses(many: int) -> list[tuple[float, float]]:
    """`many` different (epsilon, delta)."""
    return [((0.5 + GOLDEN * (index + 1) % 1) / many**0.5, 1e-7 / many) for index in range(many)]


def noise_levels(many: int) -> list[float]:
    """The sigmas of `many` Gaussian mechanisms, by a sensitivity of one."""
    return [many**0.5 * (1 + index % 10 / 10) for index in range(many)]


SAMPLING_RATE, SAMPLED_SIGMA = 0.01, 1.0
