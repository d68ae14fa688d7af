r"""An SQL dialect: how an engine spells what `loading` and `emit` need, so that every engine stores the same integers.

Engines differ in their names for types and hashes, in quoting, and in what makes them fail: PostgreSQL raises an error
if a double underflows or a decimal does not fit a double, so such values are replaced by 0 or an infinity first. After
clamping and rounding that changes nothing (a step is at least 10^-18, a bound at most 2^62 * 10^18). A field with
braces is a template; its arguments are expressions that this package writes.

No field has a default, and no other file chooses by a dialect's name: an engine's own file states all that this package
knows of its SQL. `conformance` checks it before the engine answers anything.

>>> from counterpoint.engines.duckdb import DUCKDB
>>> from counterpoint.engines.postgres import POSTGRES
>>> from counterpoint.engines.spark import SPARK
>>> SPARK.quoted("a b"), DUCKDB.quoted('we"ird')
('`a b`', '"we""ird"')
>>> POSTGRES.literal("it's"), SPARK.literal("it's")
("'it''s'", "'it\\'s'")
>>> print(POSTGRES.matches("x", "[0-9]+"))
(x ~ '^([0-9]+)$')
"""

import msgspec


class Dialect(msgspec.Struct, frozen=True):
    """The types, functions and quoting of one engine, and how it computes."""

    name: str
    """The sqlglot dialect that writes the statements' trees as text."""
    wide: str
    """The type of an exact integer of at least 125 bits, or 38 digits."""
    sums_are_wide: bool
    """Whether SUM of 64-bit integers is exact beyond 64 bits; if not, they are added up in limbs."""
    like_backtracks: bool
    """Whether LIKE tries every way to match the % of a pattern, so that one long row can take hours."""
    double: str
    text: str
    """The end of `CAST(... AS` for a text that is compared by its bytes."""
    sha256: str
    """The hexadecimal hash of a text."""
    match: str
    """Whether the whole of a text matches a regular expression."""
    floor_divide: str
    """The quotient, rounded down, of a non-negative wide integer and a positive one."""
    quotient: str
    """The same as a wide integer, of two terms called `top` and `bottom`, as sqlglot reads it in this dialect."""
    weekday: str
    """What EXTRACT calls the day of the week by which Monday is 1."""
    hexadecimal: str
    """15 hexadecimal digits as an integer whose sum is wide."""
    read_whole: str
    """The wide integer that a text of at most 30 digits spells."""
    whole_of_wide: str
    """The wide integer that a wider or unsigned one is, or NULL if it is beyond."""
    whole_of_decimal: str
    """The wide integer, without a scale, that an exact decimal is; NULL if it has a fraction."""
    read_real: str
    """The nearest double to the decimal number that a text spells."""
    from_decimal: str
    """The nearest double to an exact decimal."""
    read_date: str
    """The date of a text YYYY-MM-DD that names an existing day."""
    days: str
    """The days from 1970-01-01 to a finite date."""
    read_time: str
    """The timestamp without a zone of a text YYYY-MM-DDTHH:MM:SS, or shorter, that names an existing time."""
    micros: str
    """The microseconds from 1970-01-01 00:00 to a finite timestamp, with or without a zone."""
    nanos: str | None
    """The nanoseconds from 1970-01-01 00:00 to a finite timestamp that has them; None if no type of the engine does."""
    zoned: str
    """The type of a timestamp with a zone."""
    unzoned: str
    """The type of a timestamp without one."""
    tame: str
    """A double, with 0 for one so close to 0 that the engine might fail on it."""
    readable: str
    """A text, or NULL if its bytes are not UTF-8 or it has a NUL; not every engine checks that before it stores one."""
    tried: str
    """An expression, or NULL where the engine would fail on it."""
    quote: str
    backslashed: bool
    """Whether a backslash in a literal escapes what follows."""

    def quoted(self, name: str) -> str:
        """A name as an identifier."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def literal(self, text: str) -> str:
        """A text as a literal."""
        if self.backslashed:
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + text.replace("'", "''") + "'"

    def written(self, value: str) -> str:
        """A value cast to a text."""
        return f"CAST({value} AS {self.text}"

    def hashed(self, text: str) -> str:
        """The SHA-256 of a text's UTF-8."""
        return self.sha256.format(text)

    def matches(self, text: str, pattern: str) -> str:
        """Whether all of a text matches. A pattern has no quote and no backslash, so every engine reads it alike."""
        return self.match.format(text, pattern)
