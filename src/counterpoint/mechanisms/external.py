"""A release that was made elsewhere, as a launch: it pays and answers nothing.

What another tool has released about the same data is one more mechanism beside those that were launched here, with the
loss that its own analysis claims. Concurrent composition covers it (Henzinger et al. 2024, Def 4.1) *if* that claim is
true, holds for the same neighbours and the same rows, and the loss was fixed before the release was seen. Nothing here
can check that, so the certificate says that the claim was declared and by whom, and not derived.

>>> from counterpoint import PureDP
>>> from counterpoint.privacy.relations import every_step
>>> run = External(PureDP(0.5), every_step(), "DP-SGD run 17", "a person", "carol")
>>> print(run.claim.certificate)
PureDP(0.5) for neighbours that differ in any asks and any updates, declared by carol, not derived
  by their word on 'DP-SGD run 17', which protects a person
"""

from typing import Annotated, NoReturn

from counterpoint.coins.coins import Coins
from counterpoint.encoding import Value
from counterpoint.errors import InvalidParameter, InvalidRequest
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Left, Mechanism, State
from counterpoint.numbers.parameters import Parameter, Read
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Message
from counterpoint.privacy.relations import Relation

LONGEST = 200
"""The most characters of what was released, and of what it protects."""


def _words(given: object, what: str) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > LONGEST or not given.isprintable():
        raise InvalidParameter(
            f"{what} is a text of 1 to {LONGEST} printable characters, such as 'DP-SGD run 17' and 'a person'"
        )
    return str.__str__(given)


Words = Annotated[Parameter[str, str], Read(_words)]
"""A short text for people, which is public."""


class External(Mechanism, Value, frozen=True):
    """A release that was made elsewhere, of the claimed `loss` for neighbours in `relation`; `Session.charge` makes it.

    `what` was released, `unit` is whom it protects, in words, and `declared_by` says so. `derived` says how the loss
    follows from a list of losses that was fixed in advance; it is empty if the loss was given as it is.
    """

    loss: Loss
    relation: Relation
    what: Words
    unit: Words
    declared_by: Words
    derived: str = ""

    @property
    def claim(self) -> Claim:
        """The loss, as the custodian declared it."""
        said = f"{self.loss!r} for neighbours {self.relation.in_words}, declared by {self.declared_by}, not derived"
        word = f"their word on {self.what!r}, which protects {self.unit}"
        premises = (Certificate(f"{self.loss!r} for the whole release", self.derived),) if self.derived else ()
        return Claim(self.loss, self.relation, Certificate(said, word, premises), "one-shot")

    def __repr__(self) -> str:
        return f"External({self.loss!r}, {self.what!r})"

    def accepts(self, message: object) -> bool:
        """Nothing: the release was made elsewhere."""
        return False

    def start(self, coins: Coins) -> State:
        """The state that stays."""
        return Left(1)

    def step(self, state: State, message: Message, coins: Coins) -> NoReturn:
        """No message is accepted, so none comes."""
        raise InvalidRequest("a release that was made elsewhere answers nothing here")
