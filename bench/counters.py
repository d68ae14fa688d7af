"""Counters beside a plain numpy binary tree and jax-privacy's noise; that they do not slow down; their errors."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.table import Row, best_cpu, side_by_side
from counterpoint.coins.secure import SecureCoins
from counterpoint.continual.blt import for_horizon
from counterpoint.continual.counter import Counter
from counterpoint.continual.packed import Packed, as_integers
from counterpoint.continual.tree_noise import TreeNoise
from counterpoint.continual.tree_shapes import best_shape
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.privacy.messages import Ask, Message, Update

STEPS = 2000
WIDE = 10**6
HORIZON = 2**20


def rows() -> Iterator[Row]:
    pure, zcdp = Counter(1, horizon=HORIZON), Counter(rho="0.5", horizon=HORIZON)
    updates: list[Message] = [*[Update(1)] * 10 * STEPS]
    both: list[Message] = [Update(1), Ask()] * STEPS
    yield Row(f"{len(updates)} updates, late in a stream", *flat(zcdp, updates), "early in it", at_most=1.2)
    for name, counter in (("pure", pure), ("zCDP", zcdp)):
        times = flat(counter, both)
        yield Row(f"{STEPS} updates with asks, {name}, late in a stream", *times, "early in it", at_most=1.5)
        times = side_by_side(running(counter, both), binary_tree(1, STEPS, gaussian=name == "zCDP"))
        yield Row(f"{STEPS} updates with asks, {name}", *times, "numpy's float binary tree (neither exact nor kept)")
    yield from wide()
    yield from errors()


PROMISED = {10: 11.1, 16: 20.8, 20: 28.0}
"""Root mean square errors of pure counters at epsilon = 1, by the binary logarithm of the horizon."""


def errors() -> Iterator[Row]:
    """Root mean square errors, from exact variances."""
    for power, most in PROMISED.items():
        what = f"root mean square error of a pure counter, 2^{power} items"
        yield Row(what, known_error(2**power), most, "what is promised", at_most=1, unit="items")
    endless = [(endless_error(2**power) / known_error(2**power), power) for power in range(8, 25)]
    ratio, power = max(endless)
    what = f"the same without a horizon, at the worst of 2^8 .. 2^24 items (2^{power})"
    yield Row(what, ratio * known_error(2**power), known_error(2**power), "with it", at_most=1.25, unit="items")
    found = zcdp_ratios()
    for first, last, most in ((10, 20, 1.10), (8, 24, 1.16)):
        power = max(range(first, last + 1), key=found.__getitem__)
        what = f"a zCDP counter without a horizon, at the worst of 2^{first} .. 2^{last} items (2^{power})"
        yield Row(what, found[power], 1, "the square root of the matrix", at_most=most, unit="times its error")
    far, near = Counter(rho="0.5", horizon=2**10, per_unit=8, min_separation=128), Counter(None, 2**10, 1, "0.5", 8)
    what = "deviation of a zCDP counter after 2^10 items, 8 of a unit, 128 from each other"
    yield Row(what, far.deviation(2**10), near.deviation(2**10), "at any places", at_most=0.6, unit="items")


def zcdp_ratios() -> dict[int, float]:
    """Root mean square errors of a zCDP counter without a horizon by those of the square root, by powers of two."""
    blt, steps = for_horizon(None), np.arange(2.0**24)
    fades = [(float(fade.size.upper), float(fade.gap.upper)) for fade in blt.fades]
    b = float(blt.end) + sum(size * np.exp(steps * math.log1p(-gap)) for size, gap in fades)
    root = np.concatenate([[1.0], np.cumprod(1 - 0.5 / steps[1:])])
    norms, ours, best = np.cumsum(root**2), np.cumsum(b**2 * steps), np.cumsum(root**2 * steps)
    spread, found = np.cumsum(b**2), {}
    for power in range(8, 25):
        last, size = 2**power - 1, 2.0**power
        mine = float(blt.squared) * (spread[last] - ours[last] / size)
        found[power] = math.sqrt(mine / (norms[last] * (norms[last] - best[last] / size)))
    return found


def known_error(horizon: int) -> float:
    """Of a pure counter with this horizon: over all times, or over many that are spread evenly."""
    counter = Counter(1, horizon=horizon)
    return math.sqrt(mean_square(counter, 0, horizon))


def endless_error(last: int) -> float:
    """Of a pure counter without a horizon, up to this time; the epochs so far one by one."""
    counter, noise, end, total = Counter(1), TreeNoise(Fraction(1), 1, None, 1), last, 0.0
    while end > 0:
        start = noise.epoch(end - 1).start
        total += mean_square(counter, start, end) * (end - start)
        end = start
    return math.sqrt(total / last)


SAMPLE = 400


def mean_square(counter: Counter, start: int, end: int) -> float:
    """The mean of the variance over the times above `start` up to `end`."""
    times = sorted({start + 1 + (end - start) * part // SAMPLE for part in range(SAMPLE)})
    noise = counter.noise
    assert isinstance(noise, TreeNoise)
    variances = [sum(float(squares) * unit_variance(scale) for scale, squares in noise.parts(t)) for t in times]
    return sum(variances) / len(variances)


def unit_variance(scale: Fraction) -> float:
    """The variance of discrete Laplace noise."""
    q = math.exp(-1 / float(scale))
    return 2 * q / (1 - q) ** 2


def wide() -> Iterator[Row]:
    """A million coordinates: ten updates, each with an ask."""
    item = Update((1,) + (0,) * (WIDE - 1))
    pure, zcdp = Counter(1, HORIZON, bound=2, width=WIDE), Counter(rho="0.5", squared=2, width=WIDE)
    both: list[Message] = [item, Ask()] * 10
    what = "10 updates with asks of 10^6 counters"
    yield Row("10 updates of 10^6 counters, late in a stream", *flat(zcdp, [item] * 10), "early in it", at_most=1.5)
    yield Row(f"{what}, zCDP, late in a stream", *flat(zcdp, both, rounds=1), "early in it", at_most=1.5)
    tree = "numpy's float binary tree (neither exact nor kept), CPU time"
    times = best_cpu(running(zcdp, both), binary_tree(WIDE, 10, gaussian=True))
    yield Row(f"{what}, zCDP", *times, tree, at_most=6)
    yield from wide_and_pure(pure, [item, Ask()], tree)
    jax = jax_privacy(WIDE, 10)
    if jax is not None:
        yield Row(f"{what}, zCDP", *side_by_side(running(zcdp, both), jax, rounds=1), "jax-privacy's noise (floats)")


def wide_and_pure(counter: Counter, both: list[Message], tree: str) -> Iterator[Row]:
    """The siblings of a leaf are drawn together: steps of as many as they are take what a step takes in the long run.

    A step draws one noise for each counter, as numpy's tree does (1.05 in the long run: 20 at every 20th ask, 20 more
    at every 400th). An exact one takes 18 words of the cipher, 72 bytes: 10^6 take 15 ms, and 8 ms to compare with
    thresholds, where numpy's whole step takes 23 ms. So the draws alone are as much as all of the tree; a million
    Python integers that come in and go out are 0.7 of it, and weighing the 18 rows of noises that an answer is made of
    0.4. What is left is memory that the system has to clear, up to a half of it.

    Counts that are mostly noise have a few hundred values, which an answer shares. Where nearly all of them differ it
    takes a Python integer for each, which is once more as much as all of the tree: that is a row of its own.

    The first ask draws the path and its siblings of every level, 82 noises for each counter where the tree draws one.
    """
    arity = best_shape(HORIZON).arity
    times = best_cpu(running(counter, both * arity, HORIZON // 2), binary_tree(WIDE, arity, gaussian=False))
    yield Row(f"{arity} updates with asks of 10^6 counters, pure", *times, tree, at_most=3)
    apart = running(counter, both * arity, HORIZON // 2, total=range(WIDE))
    times = best_cpu(apart, binary_tree(WIDE, arity, gaussian=False))
    yield Row(f"{arity} updates with asks of 10^6 counters, pure, no two counts alike", *times, tree)
    times = best_cpu(running(counter, both), binary_tree(WIDE, 1, gaussian=False), rounds=1)
    yield Row("the first update with an ask of 10^6 counters, pure", *times, tree)


def flat(counter: Mechanism, messages: Sequence[Message], rounds: int = 5) -> tuple[float, float]:
    """The seconds that messages take late in a stream, and at its beginning."""
    return side_by_side(running(counter, messages, HORIZON // 2), running(counter, messages), rounds)


def running(
    counter: Mechanism, messages: Sequence[Message], start: int = 0, total: Sequence[int] | None = None
) -> Callable[[], object]:
    """The messages, from the state on that a counter has after so many items, with this total, and an ask."""
    coins = SecureCoins()
    begun: Any = counter.start(coins)
    begun = begun if total is None else replace(begun, total=Packed(as_integers(total)))
    first, _ = counter.step(replace(begun, items=start), Ask(), coins)

    def run() -> object:
        state: Any = first
        for message in messages:
            state, _ = counter.step(state, message, coins)
        return state

    return run


def binary_tree(width: int, steps: int, *, gaussian: bool) -> Callable[[], object]:
    """The textbook tree: a noise for each level in use, drawn anew when its bit of the time goes up."""
    generator = np.random.default_rng()  # noqa: TID251 - the insecure peer is what is measured here
    draw: Any = generator.normal if gaussian else generator.laplace
    levels = HORIZON.bit_length()

    def count() -> object:
        total, nodes = np.zeros(width), np.zeros((levels, width))
        answer = total
        for at in range(1, steps + 1):
            total = total + 1
            level = (at & -at).bit_length() - 1
            nodes[:level] = 0
            nodes[level] = draw(scale=levels, size=width)
            answer = total + nodes.sum(axis=0)
        return answer

    return count


def jax_privacy(width: int, steps: int) -> Callable[[], object] | None:
    """Its correlated noise from the same matrix, step by step; None, with the reason said, if it is not installed."""
    try:
        jax: Any = import_module("jax")
        peer: Any = import_module("jax_privacy.matrix_factorization.buffered_toeplitz")
    except ImportError as error:
        print(f"jax-privacy is not measured: {error}", file=sys.stderr)
        return None
    buffers = for_horizon(HORIZON).buffers
    decays, weights = [float(1 - buffer.rate) for buffer in buffers], [float(buffer.weight) for buffer in buffers]
    noising: Any = peer.BufferedToeplitz.build(buf_decay=decays, output_scale=weights).inverse_as_streaming_matrix()

    def stream() -> object:
        key = jax.random.key(0)
        state, total = noising.init_multiply(jax.numpy.zeros(width)), jax.numpy.zeros(width)
        for _ in range(steps):
            key, fresh = jax.random.split(key)
            noise, state = noising.multiply_next(jax.random.normal(fresh, (width,)), state)
            total = total + noise
        return total.block_until_ready()

    return stream
