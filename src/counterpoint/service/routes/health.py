"""Whether the service lives, and whether it can answer."""

from litestar import get

from counterpoint.service.routes.parameters import TheHouse


@get("/health", sync_to_thread=False, summary="Whether the process lives", security=[])
def health() -> dict[str, str]:
    """Always so, if it answers."""
    return {"status": "alive"}


@get("/ready", sync_to_thread=True, summary="Whether every data set can be reached", security=[])
def ready(house: TheHouse) -> dict[str, str]:
    """Every ledger was asked just now; one that was lost is opened anew."""
    house.must_answer()
    return {"status": "ready"}


ROUTES = (health, ready)
