"""How a sparse vector's loss is spread over the noise on its threshold and the noise on its values.

Let tau have scale D/e1, drawn once, and let each value's noise nu change its odds by at most e^b when it moves by what
a hit moves it in the proof of `sparse_vector`: 2D, or D if all values move the same way. With c hits:

- pure: e1 + c b (that proof). The noise of a comparison is least at e1 : c b = 1 : (2c)^(2/3), or 1 : c^(2/3);
- zCDP: e1 tanh(e1/2) + c b (1 - e^-b), so about e1^2/2 + c b^2: it grows with the number of hits, not with its square.
  The noise is least where these two are 1 : 2 sqrt(2c), or 1 : sqrt(2c).

Proof of the second (ours; Zhu and Wang 2020 bound it in another way). Fix an order a > 1, write s = a - 1, and let both
worlds be seen with their threshold, as in the pure proof: world 0 at tau and world 1 at tau + D. That can only make
them easier to tell apart. The thresholds' laws are e1-DP to each other, which contributes e1 tanh(e1/2)
(`divergences`). Given tau, a round is a miss, which is not likelier in world 0 than in world 1, or a hit (with its gap,
if it is released), and all odds between the worlds are in [e^-b, e^b]. Let W be the product of
the odds of all rounds, and V(c) the largest mean of W^s in world 0 that any adversary reaches in these rounds with c
hits to come. Then V(c) <= K^c for every K >= 1 that has h <= K (1 - m) in every such round, where h and m are what its
hits and its miss contribute to the mean of its odds^s: for V(c) is at most m V(c) + h V(c-1), with a round less to go.

Where is K = h/(1 - m) largest? As t^a is convex, hits whose odds are e^b or e^-b make h largest; let A and B be their
probabilities in world 1. Then h = A e^(ab) + B e^(-ab) is linear in (A, B), and 1 - m is concave (u^a v^(1-a) is convex
in u and v), so K is quasi-convex. That a miss is not likelier in world 0 says B <= A e^b, and its odds say
A <= 1/(1 + e^b): a triangle. Towards its corner (0, 0) K falls along every ray. The other two, at A = 1/(1 + e^b), have
K1 = e^(ab)/(1 + e^b - e^(-sb)) where B = 0, and K2 = (e^(ab) + e^(-sb))/(1 + e^b) where B = A e^b; and K1 >= K2, since
(1 - e^(-sb))(e^b - e^(-sb)) >= 0. So V(c) <= K1^c. Finally log K1 <= s (s + 1) b (1 - e^-b): at s = 0 both sides are 0
and have the slope b (1 - e^-b), and the second derivative of the left side is largest there, b^2 (e^-b + e^-2b), which
is at most 2 b^2 e^-b <= 2 b (1 - e^-b), that of the right side. So hits add at most a c b (1 - e^-b) to D_a, at all a.

If all values move one way, that is the proof for going up. Whether it goes up or down may be decided late, when an
outcome y of equal asks has been seen; if then down, both worlds go on at the same tau, and what follows has mean at
most P(y) K1^c, c being the hits left. With f(t) = P(tau = t and y), that is no more than the sum of f(t)^a f(t+D)^(1-a)
times K1^c (Hölder), which is what the proof for going up had allowed at y.

>>> shares_of_pure(Fraction(1), hits=4, reach=2)
(Fraction(1, 5), Fraction(1, 5))
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import floor

from counterpoint.numbers import Interval, Precision, precision
from counterpoint.privacy.formulas.divergences import concentrated_of_pure

_DIGITS = 30
_PLACES = 12


@lru_cache(maxsize=256)
def shares_of_pure(epsilon: Fraction, hits: int, reach: int) -> tuple[Fraction, Fraction]:
    """e1 and b with e1 + hits b = epsilon exactly; `reach` is how many times D a hit moves: 2, or 1 one way."""
    first = epsilon / (1 + _root(reach * hits, Fraction(2, 3)))
    return first, (epsilon - first) / hits


@lru_cache(maxsize=256)
def shares_of_concentrated(rho: Fraction, hits: int, reach: int) -> tuple[Fraction, Fraction]:
    """e1 and b that cost at most rho in zCDP by the theorem above; to twelve digits, rounded down.

    >>> [round(float(share), 6) for share in shares_of_concentrated(Fraction(1, 50), 8, 2)]
    [0.066679, 0.047704]
    """
    first = rho / (1 + reach * _root(2 * hits, Fraction(1, 2)))
    each = (rho - first) / hits
    return _largest(concentrated_of_pure, first), _largest(concentrated_of_hit, each)


def concentrated_of_hit(b: Fraction, p: Precision) -> Interval:
    """What one hit costs in zCDP: b (1 - e^-b).

    >>> concentrated_of_hit(Fraction(1, 10), precision(6))
    Interval(0.00951625, 0.00951626)
    """
    return -p(-b).expm1() * b


def _root(value: int, power: Fraction) -> Fraction:
    """To three places: near the best split every split is nearly as good, and any is private."""
    return Fraction(round(Fraction((precision(_DIGITS)(value) ** power).lower) * 1000), 1000)


def _largest(cost: Callable[[Fraction, Precision], Interval], limit: Fraction) -> Fraction:
    """The largest share, to twelve digits, that certainly costs at most `limit`.

    Both costs are at most x^2 and at least min(x, 1) x/4, so that the share lies between sqrt(limit) and four times the
    larger of limit and its root.
    """
    p = precision(_DIGITS)
    root = p(limit).sqrt()
    step = Fraction(10) ** (root.lower.adjusted() - _PLACES)
    low, high = floor(Fraction(root.lower) / step), floor(4 * (limit + Fraction(root.upper)) / step) + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = Fraction(cost(middle * step, p).upper) <= limit
        low, high = (middle, high) if fits else (low, middle)
    return low * step
