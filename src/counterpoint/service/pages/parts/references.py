"""The works that a certificate cites, in full: `works.txt` has those of the documentation's page of references.

>>> from counterpoint.privacy.certificates import Certificate
>>> [work.name for work in cited(Certificate("it holds", "Haney et al. 2023, Thm 1.19", ()))]
['Haney et al. 2023']
"""

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from counterpoint.privacy.certificates import Certificate


class CitedWork(NamedTuple):
    """A work: how it is cited, and its authors, title and place."""

    name: str
    full: str


@cache
def works() -> tuple[CitedWork, ...]:
    """All that may be cited."""
    lines = files("counterpoint.service.pages").joinpath("works.txt").read_text(encoding="utf-8").splitlines()
    return tuple(CitedWork(*line.split("\t")) for line in lines)


def cited(certificate: Certificate) -> list[CitedWork]:
    """Those that a derivation stands on."""
    text = "\n".join(_theorems(certificate))
    return [work for work in works() if work.name in text]


def _theorems(certificate: Certificate) -> Iterator[str]:
    yield certificate.theorem
    for premise in certificate.premises:
        yield from _theorems(premise)
