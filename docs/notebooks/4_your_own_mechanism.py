# %% [markdown]
# # Your own mechanism, verified
#
# A mechanism is a program that answers questions about secrets. You can write one of parts that exist, and what it
# costs follows. Or you write everything yourself and claim a loss; then let the verifier try to refute the claim.

# %%
import counterpoint as cp
from counterpoint.encoding import Value
from counterpoint.numbers.parameters import Positive

EACH = (
    cp.relations.every_step()
)  # neighbours: any question may have another answer, by its sensitivity

# %% [markdown]
# ## Of parts
#
# This one watches numbers, and releases the first that looks large. A sparse vector watches, a Laplace mechanism
# releases, and each has half of epsilon.


# %%
class Nothing(cp.mechanisms.Own, Value, frozen=True):
    """The state of the program itself: it has none."""


class FirstPeak(cp.Composite, Value, frozen=True):
    """Releases the first value that reaches 1,000."""

    epsilon: Positive
    relation = EACH

    @property
    def structure(self):
        half = cp.PureDP(self.epsilon / 2)
        return cp.mechanisms.Part("watch", half, EACH), cp.mechanisms.Part(
            "release", half, EACH
        )

    def accepts(self, message):
        return isinstance(message, cp.mechanisms.Ask) and message.private is not None

    def begin(self, context):
        context.launch("watch", cp.SparseVector(self.epsilon / 2, threshold=1000))
        context.launch("release", cp.Laplace(self.epsilon / 2))
        return Nothing()

    def react(self, context, own, message):
        if not context.ask("watch", message.private):
            return own, None
        return None, context.ask("release", message.private)


FirstPeak(epsilon=1).claim.loss

# %% [markdown]
# It runs in a session like any other mechanism.

# %%
session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(1))
peak = session.launch(FirstPeak(epsilon=1))
for state in ["WY", "VT", "OR", "CA"]:
    if not peak.halted:
        print(state, peak.ask(cp.count(where=f"state = '{state}'")))

# %% [markdown]
# ## Against every adversary
#
# `verify.exact` runs the same code on every outcome of its coins, in two neighbouring worlds at once, and finds the
# adversary that tells them apart best. The claim holds:

# %%
pairs = [
    (cp.mechanisms.Ask(private=a), cp.mechanisms.Ask(private=b))
    for a, b in [(999, 1000), (1000, 999)]
]
found = cp.verify.exact(FirstPeak(epsilon=5), messages=pairs, rounds=2)
found.judge()

# %% [markdown]
# ## A planted bug
#
# This version releases twice the value, with the noise of once. It is an easy mistake, and the answers look fine.


# %%
class Doubled(FirstPeak, frozen=True):
    def react(self, context, own, message):
        if not context.ask("watch", message.private):
            return own, None
        return None, context.ask("release", message.private * 2)


found = cp.verify.exact(Doubled(epsilon=5), messages=pairs, rounds=2)
found.judge()

# %% [markdown]
# What is the attack? The verifier has it.

# %%
print("\n".join(str(found.adversary).splitlines()[:6]))

# %% [markdown]
# ## Secrets do not get out
#
# A program that looks at a raw value is stopped at the line that looks.


# %%
class Peeking(FirstPeak, frozen=True):
    def react(self, context, own, message):
        return own, 1 if message.private > 100 else 0


# %% raises
Peeking(epsilon=1).step(
    Peeking(epsilon=1).start(cp.coins.SeededCoins(1)),
    cp.mechanisms.Ask(private=5),
    cp.coins.SeededCoins(1),
)

# %% [markdown]
# Next: [running it for real](5_running_it_for_real.ipynb).
