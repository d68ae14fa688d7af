"""Lower bounds from games that are played: the players, the search for a script, and what counts prove."""
