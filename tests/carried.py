"""What an error carries along with it: its chain, and the locals of every frame that it came through.

Tools that show errors (debuggers, error reporters, `pytest -l`) go exactly this way, and so does an attacker who is
handed the error object.
"""

from types import FunctionType

import msgspec

from counterpoint.mechanisms.mechanism import State
from counterpoint.privacy.secret import Secret, counted, reveal


def chained(error):
    """The errors that it points to. `raise ... from None` hides them, and leaves them there."""
    return [other for other in (error.__context__, error.__cause__) if other is not None]


def carried(error, own, *, opened):
    """All values that it, its chain and their frames hold, containers, closures and structs opened.

    Secrets and states show nothing of themselves, so an error may hold them; with `opened` they are looked into, too.
    Frames of the file `own`, a test that knows the values anyway, are left out.
    """
    waiting, seen, errors = [], {}, [error]
    while errors:
        here = errors.pop()
        if id(here) not in seen:
            seen[id(here)] = here
            errors += chained(here)
            waiting += [*here.args, *vars(here).values(), *_locals(here.__traceback__, own)]
    while waiting:
        value = waiting.pop()
        if id(value) not in seen:
            seen[id(value)] = value  # kept, or what is made on the way may get the id of another
            waiting += _inside(value, opened)
            yield value


def shows(error, canary, own, *, opened=False):
    """Whether it carries the value: as it is, or in what something says of itself."""
    values = carried(error, own, opened=opened)
    return any(value == canary if isinstance(value, int) else str(canary) in repr(value) for value in values)


def _locals(traceback, own):
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename != own:
            yield from traceback.tb_frame.f_locals.values()
        traceback = traceback.tb_next


def _inside(value, opened):
    if isinstance(value, Secret):
        return [counted(value) if value.keyed else reveal(value)] if opened else []
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    if isinstance(value, msgspec.Struct) and (opened or not isinstance(value, State)):
        return [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    return [value.args, vars(value)] if isinstance(value, BaseException) else []
