"""All libraries, in the order of the page's columns: ours first."""

from peers import (
    with_accounting,
    with_counterpoint,
    with_jax_privacy,
    with_opendp,
    with_pipelinedp,
    with_smartnoise,
    with_tumult,
)

OURS = with_counterpoint.LIBRARY
LIBRARIES = {
    library.name: library
    for library in (
        OURS,
        with_opendp.LIBRARY,
        with_tumult.LIBRARY,
        with_smartnoise.LIBRARY,
        with_pipelinedp.LIBRARY,
        with_accounting.LIBRARY,
        with_jax_privacy.LIBRARY,
    )
}
