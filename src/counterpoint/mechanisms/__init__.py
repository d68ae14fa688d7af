"""State machines that answer with noise, one step for each message.

Sessions drive the mechanisms of the top level (`cp.Laplace`). Here are the messages and states that they exchange, for
code that drives a mechanism itself, and what a mechanism or a composite of your own is made of.

>>> import counterpoint as cp
>>> mechanism = cp.Laplace(epsilon=1, asks=2)
>>> coins = cp.coins.SeededCoins(1)
>>> state, answer = mechanism.step(mechanism.start(coins), cp.mechanisms.Ask(private=10), coins)
>>> isinstance(state, cp.mechanisms.State)
True
"""

from counterpoint.lazy import listed

__getattr__, __dir__, __all__ = listed(__name__)
