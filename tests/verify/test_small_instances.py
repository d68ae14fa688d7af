"""What makes instances small enough to enumerate: coarse grids for counters, and compositions of a fixed size."""

import pytest

from counterpoint import PureDP, RandomizedResponse
from counterpoint.coins.secure import SeededCoins
from counterpoint.composition.odometers import Odometer
from counterpoint.continual.blt_noise import LIFETIME, blt_noise
from counterpoint.measures import zCDP
from counterpoint.mechanisms import Ask, Launch, ToChild, Update
from counterpoint.privacy.relations import every_step, k_sparse
from counterpoint.verify.catalogue.instances import session_game, stopped
from counterpoint.verify.catalogue.mechanisms import Resized
from counterpoint.verify.exact_loss import exact
from counterpoint.verify.game import CreatedFirst
from counterpoint.verify.message_pairs import updates
from counterpoint.verify.verdict import Verdict

ASK = (Ask(), Ask())


def test_a_coarse_counter_at_the_shipped_grid_and_life_is_the_shipped_one():
    shipped = blt_noise(2, 2)
    assert Resized(rho=2, horizon=2, bits=shipped.bits, steps=LIFETIME).noise == shipped
    vectors = blt_noise(2, 2, squared=2, coordinates=2, width=3)
    assert Resized(rho=2, horizon=2, squared=2, width=3, bits=vectors.bits, steps=LIFETIME).noise == vectors


class TooQuiet(Resized, frozen=True):
    """With a hundredth of the variance."""

    @property
    def noise(self):
        right = super().noise
        return right._replace(sigma2=max(1, right.sigma2 // 100))


@pytest.mark.parametrize("kind, wrong", [(Resized, False), (TooQuiet, True)])
def test_a_coarse_counter_with_too_little_noise_is_refuted(kind, wrong):
    counter = kind(rho="0.5", horizon=2, bits=1, steps=1)
    loss = exact(counter, messages=[*updates([(0, 1)]), ASK], rounds=2, cut="1e-9")
    assert counter.claim.loss == zCDP("0.5") and (loss.judge() is Verdict.REFUTED) is wrong


def test_a_coarse_counter_halts_after_its_steps_and_not_before():
    counter, coins = Resized(rho=2, horizon=2, bits=2, steps=2), SeededCoins(1)
    state = counter.start(coins)
    for items in (1, 2):
        state, _ = counter.step(state, Update(1), coins)
        if items == 2:
            state, again = counter.step(state, Update(0), coins)
            assert again is None
        after, answer = counter.step(state, Ask(), coins)
        assert isinstance(answer, int) and (after is None) == (items == 2)
        state = after


CREATE = (Ask(Launch(RandomizedResponse(1))),) * 2
DIFFER, SAME = (Ask(ToChild(0), 0), Ask(ToChild(0), 1)), (Ask(ToChild(0), 1), Ask(ToChild(0), 1))


def test_suitable_sequences_create_first_and_obey_their_inner_relation():
    relation = CreatedFirst(k_sparse(1, every_step()), 2)
    other = (Ask(ToChild(1), 0), Ask(ToChild(1), 1))
    assert relation.valid([CREATE, CREATE, DIFFER, SAME]) and relation.valid([CREATE]) and relation.symmetric
    assert not relation.valid([CREATE, DIFFER]) and not relation.valid([CREATE, CREATE, CREATE])
    assert not relation.valid([CREATE, CREATE, DIFFER, other]), "two children differ"


def test_suitable_sequences_are_within_what_they_restrict():
    inner = k_sparse(1, every_step())
    relation = CreatedFirst(inner, 2)
    assert relation.within(inner) and relation.within(CreatedFirst(k_sparse(2, every_step()), 2))
    assert not relation.within(CreatedFirst(inner, 3)) and not inner.within(relation)


def test_an_odometer_that_forgets_a_launch_is_refuted():
    class Forgetful(Odometer, frozen=True):
        def admit(self, account, claim):
            return account if claim.loss == PureDP("0.2") else super().admit(account, claim)

    menu = [PureDP("0.2"), PureDP("0.5")]
    wrong, right = (session_game(stopped(kind(PureDP), PureDP(1)), menu, 5) for kind in (Forgetful, Odometer))
    assert exact(wrong).judge(PureDP(1)) is Verdict.REFUTED and exact(right).judge(PureDP(1)) is Verdict.HOLDS
