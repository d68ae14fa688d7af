# %% [markdown]
# # Sparse vectors, and mechanisms that take turns
#
# Often you do not know yet what to ask. A *sparse vector* answers yes or no: is this number above a threshold? It may
# be asked any number of questions, and is charged only for the times it says yes.

# %%
import counterpoint as cp

session = cp.Session(cp.datasets.people_table(), within=cp.ApproxDP(1, 1e-6))
above = session.launch(cp.SparseVector(epsilon=0.4, threshold=400, hits=3))

# %% [markdown]
# The launch was charged, for three hits. Asking costs nothing more. Which ages between 0 and 100 have more than 400
# people? There are a hundred questions, and most of them are free.

# %%
found, asked = [], 0
for age in range(100):
    asked += 1
    if above.ask(cp.count(where=f"age = {age}")):
        found.append(age)
    if above.halted:
        break
f"{asked} questions, hits at {found}"

# %%
session.loss

# %% [markdown]
# A sparse vector keeps a secret: the noise on its threshold, drawn at the launch and used for every question. That is
# why the composition of such mechanisms needs theorems of its own. They may take turns in any order.
#
# ## Taking turns
#
# A second sparse vector looks for states with many old people, and a Laplace mechanism measures those that it finds.
# The next question depends on the last answer, of either mechanism.

# %%
old = session.launch(cp.SparseVector(epsilon=0.3, threshold=300, hits=4))
noisy = session.launch(cp.Laplace(epsilon=0.2, asks=4))
for state in ["WY", "CA", "OR", "TX", "VT", "FL", "NY"]:
    if not old.halted and old.ask(cp.count(where=f"state = '{state}' AND age >= 65")):
        print(
            state,
            "about",
            noisy.ask(cp.count(where=f"state = '{state}' AND age >= 65")),
        )

# %% [markdown]
# The budget as a score: the loss on top, and below it a voice for each mechanism. In music, that is counterpoint.

# %%
session.plot()

# %% [markdown]
# A mechanism that has been launched keeps answering, whatever happens to the budget.

# %%
rest = session.launch(cp.Laplace(epsilon=session.remaining.epsilon))
session.remaining

# %% raises
session.launch(cp.Laplace(epsilon=0.01))

# %%
rest.ask(cp.count())

# %% [markdown]
# ## How good is a yes?
#
# `error` says how far from the threshold a number must be so that the answer is right with this probability.

# %%
cp.SparseVector(epsilon=0.4, threshold=400, hits=3).error(0.95, asks=100)

# %% [markdown]
# Next: [data that keeps arriving](3_streams.ipynb).
