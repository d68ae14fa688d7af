"""Counters beside a plain numpy binary tree and jax-privacy's streaming noise; and that they do not slow down."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.table import Row, seconds, side_by_side
from counterpoint.mechanisms.blt import for_horizon
from counterpoint.mechanisms.counters import Counter
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.mechanisms.vector_counters import VectorCounter
from counterpoint.privacy.messages import Ask, Message, Update
from counterpoint.randomness.secure import SecureCoins

STEPS = 2000
WIDE = 10**6
HORIZON = 2**20


def rows() -> Iterator[Row]:
    pure, zcdp = Counter(1, horizon=HORIZON), Counter(rho="0.5", horizon=HORIZON)
    updates: Sequence[Message] = [Update(1)] * 10 * STEPS
    early, late = (partial(run, pure, updates, start) for start in (0, HORIZON // 2))
    yield Row(f"{len(updates)} updates, late in a stream", *side_by_side(late, early), "early in it", at_most=1.2)
    both: list[Message] = [Update(1), Ask()] * STEPS
    for name, counter in (("pure", pure), ("zCDP", zcdp)):
        early, late = (partial(run, counter, both, start) for start in (0, HORIZON // 2))
        flat = side_by_side(late, early)
        yield Row(f"{STEPS} updates with asks, {name}, late in a stream", *flat, "early in it", at_most=1.5)
        peer = binary_tree(1, STEPS, gaussian=name == "zCDP")
        times = side_by_side(partial(run, counter, both, 0), peer)
        yield Row(f"{STEPS} updates with asks, {name}", *times, "numpy's float binary tree (neither exact nor kept)")
    yield from wide()


def wide() -> Iterator[Row]:
    """A million coordinates: ten updates, each with an ask."""
    item = Update((1,) + (0,) * (WIDE - 1))
    both: list[Message] = [item, Ask()] * 10
    for name, counter in (
        ("pure", VectorCounter(WIDE, 1, HORIZON, bound=2)),
        ("zCDP", VectorCounter(WIDE, rho="0.5", squared=2)),
    ):
        times = seconds(partial(run, counter, both, 0)), seconds(binary_tree(WIDE, 10, gaussian=name == "zCDP"))
        yield Row(f"10 updates with asks of 10^6 counters, {name}", *times, "numpy's float binary tree")
    jax = jax_privacy(WIDE, 10)
    if jax is not None:
        times = seconds(partial(run, VectorCounter(WIDE, rho="0.5", squared=2), both, 0)), seconds(jax)
        yield Row("10 updates with asks of 10^6 counters, zCDP", *times, "jax-privacy's streaming noise (floats)")


def run(counter: Mechanism, messages: Sequence[Message], start: int) -> object:
    """The messages, from the state on that a counter has after so many items."""
    coins = SecureCoins()
    begun: Any = counter.start(coins)
    state: Any = replace(begun, items=start)
    state, _ = counter.step(state, Ask(), coins)
    for message in messages:
        state, _ = counter.step(state, message, coins)
    return state


def binary_tree(width: int, steps: int, *, gaussian: bool) -> Callable[[], object]:
    """The textbook tree: a noise for each level in use, drawn anew when its bit of the time goes up."""
    generator = np.random.default_rng()  # noqa: TID251 - the insecure peer is what is measured here
    draw: Any = generator.normal if gaussian else generator.laplace
    levels = HORIZON.bit_length()

    def count() -> object:
        total, nodes = np.zeros(width), np.zeros((levels, width))
        answer = total
        for time in range(1, steps + 1):
            total = total + 1
            level = (time & -time).bit_length() - 1
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
