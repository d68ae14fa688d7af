"""A source for tests: named integers, asked for by name, with parts by their first letter."""

from fractions import Fraction

from counterpoint.errors import InvalidRequest
from counterpoint.privacy.relations import Steps
from counterpoint.privacy.secret import Secret
from counterpoint.queries.request import PreparedQuery
from counterpoint.queries.source import Source


class Numbers(Source):
    def __init__(self, values, sensitivity=1, grid=Fraction(1), reach=1):
        self.values, self.sensitivity, self.grid, self._reach = dict(values), sensitivity, grid, reach

    @property
    def relation(self):
        return Steps(updates=0)

    def pin(self):
        return "v1"

    def prepare(self, request):
        if not isinstance(request, str) or request.startswith("bad"):
            raise InvalidRequest("a request is a name")
        return PreparedQuery(request, self.sensitivity, self.sensitivity**2, None, self.grid)

    def resolve(self, pin, prepared):
        assert pin == "v1"
        return Secret(self.values.get(prepared.request, 0))

    def reach(self, by):
        return self._reach

    def part(self, by, key):
        if not isinstance(key, str):
            raise InvalidRequest("parts are named by letters")
        return Numbers({k: v for k, v in self.values.items() if k.startswith(key)}, self.sensitivity, self.grid)
