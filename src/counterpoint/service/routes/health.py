"""Whether the service lives, and whether it can answer."""

from litestar import get

from counterpoint.service.routes.parameters import TheHouse


@get("/health", sync_to_thread=False, summary="Whether the process lives", security=[])
def health() -> dict[str, str]:
    """Always so, if it answers."""
    return {"status": "alive"}


@get("/ready", sync_to_thread=True, summary="Whether every data set can be reached", security=[])
def ready(house: TheHouse) -> dict[str, str]:
    """Every ledger is open, or was opened anew just now."""
    for name in house.names:
        house.data_set(name).session()
    return {"status": "ready"}


ROUTES = (health, ready)
