# %% [markdown]
# # Explore a table
#
# A table of people, a budget, and questions about it. Every answer has noise, and says how much. The people are made
# up and come with the package, so you can run this anywhere: `pip install counterpoint[plot]`.

# %%
import counterpoint as cp

people = cp.Table(
    cp.datasets.people(),
    unit="person_id",  # who is protected: everything about one person
    rows_per_unit=1,  # and how many rows of a person count
    columns={
        "state": cp.category(
            ["CA", "TX", "FL", "NY", "IL", "OH", "WA", "OR", "VT", "WY"]
        ),
        "age": cp.number(0, 100),
        "income": cp.number(0, 200_000, step=100),
    },
)
session = cp.Session(people, within=cp.ApproxDP(3, 1e-6))

# %% [markdown]
# The declaration is public, and nothing in it was read off the rows. `describe` says what it means, in a paragraph that
# you can show to those whose data it is.

# %%
print(people.describe())

# %% [markdown]
# ## A first answer
#
# `ask` launches a mechanism that suits the question, charges the budget, and asks it once. The answer is a number like
# any other, and it knows how far off it is.

# %%
adults = session.ask(cp.count(where="age >= 18"), epsilon=0.1)
adults

# %%
adults.error(0.99), adults.cost, adults.why

# %% [markdown]
# ## Tables
#
# With `by=` there is an answer for each key. Each person is in one state, so all states together cost as much as one.

# %%
states = session.ask(cp.count(by="state"), epsilon=0.2)
states

# %%
states.plot()

# %% [markdown]
# Wyoming has few people, and its mean income is mostly noise. The error says so: it is computed from the noisy answer,
# not from the data.

# %%
session.ask(cp.mean("income", by="state"), epsilon=0.3)

# %% [markdown]
# The table is one for other libraries too.

# %%
states.to_pandas().sort_values("value", ascending=False).head(3)

# %% [markdown]
# ## Say what accuracy you need
#
# You need not choose an epsilon. Say how far off the answer may be, and the session finds the cheapest way.

# %%
session.would_cost(cp.count(where="state = 'NY'"), error=50)

# %%
session.ask(cp.count(where="state = 'NY'"), error=50)

# %% [markdown]
# ## What is left
#
# A question that does not fit is refused. The refusal costs nothing, and says what would fit.

# %% raises
session.ask(cp.count(), epsilon=10)

# %%
session.plot()

# %% [markdown]
# `certificate` derives the loss from theorems, line by line.

# %%
session.certificate()

# %% [markdown]
# Next: [mechanisms that take turns](2_sparse_vector.ipynb).
