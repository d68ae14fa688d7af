"""Certificates: the derivation behind a guarantee, as a small tree that a person can read.

Each node states something, names the theorem that it follows from (paper and number) and rests on its premises.
Rules and composites put new nodes on top of the ones they were given.

>>> laplace = Certificate("each answer is PureDP(0.1)", "discrete Laplace, scale = sensitivity/epsilon")
>>> print(Certificate("ten answers are PureDP(1)", "Henzinger et al. 2024, Cor 3.8 and basic composition", (laplace,)))
ten answers are PureDP(1)
│ by Henzinger et al. 2024, Cor 3.8 and basic composition
└─ each answer is PureDP(0.1)
     by discrete Laplace, scale = sensitivity/epsilon
"""

from collections.abc import Iterator

from counterpoint.display.markup import as_page, as_rich
from counterpoint.encoding import Tagged, Value, encode


def machine_checked(theorem: str, checked: str | None, only: str = "") -> str:
    """A theorem with the name of the statement in `proofs/` that Coq has checked, where there is one.

    `only` says what of the theorem that statement covers, where it is not all of it.

    >>> machine_checked("Haney et al. 2023, Lemma 2.19", "odometer_iff_filter")
    'Haney et al. 2023, Lemma 2.19; machine-checked: odometer_iff_filter'
    >>> machine_checked("Haney et al. 2023, Thm 1.21", None)
    'Haney et al. 2023, Thm 1.21'
    >>> machine_checked("Henzinger et al. 2024, Cor 5.5", "parallel_pure", "at delta = 0")
    'Henzinger et al. 2024, Cor 5.5; machine-checked: parallel_pure (at delta = 0)'
    """
    covered = f" ({only})" if only else ""
    return theorem if checked is None else f"{theorem}; machine-checked: {checked}{covered}"


class Certificate(Tagged, Value, frozen=True):
    """A statement, the theorem it follows from, and the certificates of its premises.

    >>> Certificate("nothing was lost", "no answer was given").premises
    ()
    """

    statement: str
    theorem: str
    premises: tuple["Certificate", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        """One line, whatever the derivation: `print` shows all of it.

        >>> Certificate("a", "b", (Certificate("c", "d"),))
        Certificate('a', by 'b', from 1 premise)
        """
        rests = len(self.premises)
        from_ = f", from {rests} premise{'s' if rests > 1 else ''}" if rests else ""
        return f"Certificate({self.statement!r}, by {self.theorem!r}{from_})"

    def _repr_html_(self) -> str:
        return as_page(self)

    def __rich__(self) -> object:
        return as_rich(self)

    def _lines(self) -> Iterator[str]:
        yield self.statement
        yield f"{'│' if self.premises else ' '} by {self.theorem}"
        for index, premise in enumerate(self.premises):
            last = index == len(self.premises) - 1
            first, *rest = premise._lines()
            yield f"{'└' if last else '├'}─ {first}"
            yield from (f"{' ' if last else '│'}  {line}" for line in rest)

    def json(self) -> str:
        """The tree as JSON, for machines.

        >>> Certificate("a", "b").json()
        '{"type":"Certificate/1","statement":"a","theorem":"b","premises":[]}'
        """
        return encode(self).decode()

    def rests_on(self, theorem: str) -> bool:
        """Whether any step of the derivation names this theorem.

        >>> Certificate("a", "Haney et al. 2023, Thm 1.21").rests_on("Haney et al. 2023, Thm 1.21")
        True
        """
        return theorem in self.theorem or any(premise.rests_on(theorem) for premise in self.premises)
