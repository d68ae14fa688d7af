"""The tasks with jax-privacy: correlated noise by factorization, for sums of vectors that arrive one after another."""

import os
from collections.abc import Callable
from typing import Any

from peers.library import Library
from peers.tasks import ANSWERS, DEVIATIONS, FAR_ITEMS


def _start() -> None:
    import jax
    import jax_privacy.matrix_factorization.buffered_toeplitz
    import jax_privacy.matrix_factorization.toeplitz  # noqa: F401 - imported before the clock runs

    jax.config.update("jax_enable_x64", True)


def _stream(size: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    from jax_privacy.matrix_factorization import buffered_toeplitz, streaming_matrix

    factor = buffered_toeplitz.BufferedToeplitz.from_rational_approx_to_sqrt_x(num_buffers=10)
    sensitivity = buffered_toeplitz.sensitivity_squared(factor, size) ** 0.5
    correlated = factor.inverse_as_streaming_matrix()
    items, places = jnp.tile(jnp.array([1, 0]), size // 2), slice(size // ANSWERS - 1, None, size // ANSWERS)

    def noisy_counts(key: Any) -> Any:
        white = sensitivity * jax.random.normal(key, (size,))
        return jnp.cumsum(items + streaming_matrix.multiply_array(correlated, white))[places]

    compiled = jax.jit(noisy_counts).lower(jax.random.key(0)).compile()

    def answers() -> list[float]:
        seed = int.from_bytes(os.urandom(4), "big")
        found: list[float] = compiled(jax.random.key(seed)).tolist()
        return found

    return answers


def _separated(size: int) -> Callable[[], Any]:
    from jax_privacy.matrix_factorization import toeplitz

    apart = size // FAR_ITEMS

    def deviations() -> list[float]:
        factor = toeplitz.optimize_banded_toeplitz(size, apart)
        squared = toeplitz.minsep_sensitivity_squared(factor, apart, FAR_ITEMS, size)
        variances = squared * toeplitz.per_query_error(strategy_coef=factor, n=size)
        return [float(variances[size * place // DEVIATIONS - 1]) ** 0.5 for place in range(1, DEVIATIONS + 1)]

    return deviations


NO_TABLES = "it trains models: it has no queries of tables"
NO_BUDGET = "it has no budget that launches are charged to"

LIBRARY = Library(
    "jax_privacy",
    "jax-privacy",
    "jax-privacy",
    __name__,
    ("jax-privacy",),
    works={"stream": _stream, "separated": _separated},
    cannot={
        "different_losses": "its accounting is dp_accounting's",
        "gaussian_losses": "its accounting is dp_accounting's",
        "sampled_gaussians": "its accounting is dp_accounting's",
        "filter": NO_BUDGET,
        "interleaved": NO_BUDGET,
        "threads": NO_BUDGET,
        **dict.fromkeys(("group_by", "group_by_units", "counts", "means", "medians", "keys"), NO_TABLES),
    },
    no_gallery=NO_TABLES,
    start=_start,
)
