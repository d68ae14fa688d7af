"""Twenty mistakes, each of which is refused with a message that helps. After `says:` stand parts of that message: what
was asked, what the limit is, and what would work. `docs/make_gallery.py` shows them, and a test commits each one.
"""

# %% 0. Setting up
import counterpoint as cp

people = cp.datasets.people_table()
session = cp.Session(people, within=cp.PureDP(1))

# %% 1. Nothing says what is protected
# says: unit= | each_row
cp.Table(cp.datasets.people())

# %% 2. Nothing says how many rows of a person count
# says: person_id | rows_per_unit=
cp.Table(cp.datasets.people(), unit="person_id")

# %% 3. A declared column does not exist
# says: 'aeg' | there are: person_id, state, age, income
cp.Table(
    cp.datasets.people(),
    unit="person_id",
    rows_per_unit=1,
    columns={"aeg": cp.number(0, 100)},
)

# %% 4. Bounds in the wrong order
# says: 100 | 0
cp.number(100, 0)

# %% 5. Data that is no table
# says: list | .parquet | pandas
cp.Table([1, 2, 3], unit=cp.each_row)

# %% 6. A session without a budget
# says: within=ApproxDP(1, 1e-6) | rule=
cp.Session(people)

# %% 7. A budget that is only a number
# says: 1 | PureDP(1)
cp.Session(people, within=1)

# %% 8. More than the budget
# says: PureDP(2) | PureDP(1)
session.launch(cp.Laplace(epsilon=2))

# %% 9. An epsilon below zero
# says: -1 | above 0
cp.Laplace(epsilon=-1)

# %% 10. A question without a price
# says: epsilon= | error=
session.ask(cp.count())

# %% 11. A misspelled column
# says: 'agee' | 'age'
session.ask(cp.mean("agee"), epsilon=0.1)

# %% 12. The mean of a column without bounds
# says: person_id | number(low, high
session.ask(cp.mean("person_id"), epsilon=0.1)

# %% 13. A number compared with a text
# says: age | from 0 to 100 | compare it with a number
session.ask(cp.count(where="age >= 'thirty'"), epsilon=0.1)

# %% 14. A subquery in a condition
# says: does not support 'SELECT' | It may contain columns
session.ask(cp.count(where="age > (SELECT avg(age) FROM people)"), epsilon=0.1)

# %% 15. Groups of a column whose keys are not known
# says: person_id | keys=
session.ask(cp.count(by="person_id"), epsilon=0.1)

# %% 16. An error that is known only after the answer
# says: mean | epsilon=
session.ask(cp.mean("age"), error=1)

# %% 17. A class instead of a mechanism
# says: Laplace | Laplace(epsilon=
session.launch(cp.Laplace)

# %% 18. More asks than were launched
# says: Laplace | launch
noisy = session.launch(cp.Laplace(epsilon=0.1, asks=1))
noisy.ask(cp.count())
noisy.ask(cp.count())

# %% 19. Gaussian noise within a pure budget
# says: GaussianDP(rho=0.01) | covers PureDP | budget in ApproxDP
session.launch(cp.Gaussian(rho=0.01))

# %% 20. A part that does not exist
# says: 'ZZ' | 'CA'
session.partition("state", within=cp.PureDP(0.1))["ZZ"]
