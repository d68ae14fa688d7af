"""A session's history for comparing: what was done, without the time by the clock."""


def lines(session):
    """Every line of the history, also of what was refused."""
    return [(fact.kind, fact.path, fact.what, fact.who) for fact in session.history]


def done(session):
    """The lines of what was admitted."""
    return [line for line in lines(session) if line[0] not in ("refusal", "denial")]
