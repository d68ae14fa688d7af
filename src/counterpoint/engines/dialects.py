r"""SQL dialects: how each engine spells what `loading` needs, so that all of them store the same integers.

Engines differ in their names for types and hashes, in quoting, and in what makes them fail: PostgreSQL raises an error
if a double underflows or a decimal does not fit a double, so such values are replaced by 0 or an infinity first. After
clamping and rounding that changes nothing (a step is at least 10^-18, a bound at most 2^62 * 10^18). A field with
braces is a template; its arguments are expressions that this package writes.

All that this package knows of an engine's SQL stands here: no field has a default, and nothing elsewhere is chosen by a
dialect's name. What a dialect says is checked before an engine answers anything (see `conformance`).

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


DUCKDB = Dialect(
    name="duckdb",
    wide="HUGEINT",
    sums_are_wide=True,
    like_backtracks=False,
    double="DOUBLE",
    text="VARCHAR)",
    sha256="SHA256({})",
    match="REGEXP_FULL_MATCH({}, '{}')",
    floor_divide="({}) // {}",
    quotient="CAST((top // bottom) AS HUGEINT)",
    weekday="ISODOW",
    hexadecimal="CAST('0x' || {} AS BIGINT)",
    read_whole="TRY_CAST({} AS HUGEINT)",
    whole_of_wide="TRY_CAST({} AS HUGEINT)",
    whole_of_decimal="CASE WHEN {0} % 1 = 0 THEN CAST({0} AS HUGEINT) END",  # FLOOR may leave 38 digits, and fails
    read_real="TRY_CAST({} AS DOUBLE)",
    from_decimal="CAST({} AS DOUBLE)",
    read_date="TRY_CAST({} AS DATE)",
    days="CAST({} - DATE '1970-01-01' AS BIGINT)",
    read_time="TRY_CAST({} AS TIMESTAMP)",
    micros="EPOCH_US({})",
    nanos="EPOCH_NS({})",
    zoned="TIMESTAMPTZ",
    unzoned="TIMESTAMP",
    tame="{}",
    readable="CASE WHEN NOT CONTAINS({0}, CHR(0)) THEN TRY(DECODE(ENCODE({0}))) END",
    tried="TRY({})",
    quote='"',
    backslashed=False,
)

_SAFE = (
    "CASE WHEN {0} = 'NaN' THEN 'NaN' WHEN {0} > 1e300 THEN 'Infinity' WHEN {0} < -1e300 THEN '-Infinity' "
    "WHEN ABS({0}) < 1e-300 THEN 0 ELSE CAST({0} AS DOUBLE PRECISION) END"
)

POSTGRES = Dialect(
    name="postgres",
    wide="NUMERIC",
    sums_are_wide=True,
    like_backtracks=False,
    double="DOUBLE PRECISION",
    text='TEXT) COLLATE "C"',
    sha256="ENCODE(SHA256(CONVERT_TO({}, 'UTF8')), 'hex') COLLATE \"C\"",
    match="({} ~ '^({})$')",
    floor_divide="DIV({}, {})",
    quotient="DIV(top, bottom)",
    weekday="ISODOW",
    hexadecimal="CAST(CAST('x' || {} AS BIT(60)) AS BIGINT)",
    read_whole="CAST({} AS NUMERIC)",
    whole_of_wide="{}",
    whole_of_decimal="CASE WHEN {0} = FLOOR({0}) THEN TRUNC({0}) END",
    read_real=_SAFE.replace("{0}", "CAST({0} AS NUMERIC)"),
    from_decimal=_SAFE,
    read_date="CAST({} AS DATE)",
    days="CAST({} - DATE '1970-01-01' AS BIGINT)",
    read_time="CAST({} AS TIMESTAMP)",
    micros="CAST(EXTRACT(EPOCH FROM {}) * 1000000 AS BIGINT)",
    nanos=None,
    zoned="TIMESTAMPTZ",
    unzoned="TIMESTAMP",
    tame="CASE WHEN ABS({0}) < 1e-200 THEN 0 ELSE {0} END",
    readable="{}",
    tried="{}",
    quote='"',
    backslashed=False,
)

SPARK = Dialect(
    name="spark",
    wide="DECIMAL(38, 0)",
    sums_are_wide=False,  # and a SUM of decimals takes three times as long as those of the limbs
    like_backtracks=True,
    double="DOUBLE",
    text="STRING)",
    sha256="SHA2({}, 256)",
    match="({} RLIKE '(?s)^({})$(?!.)')",  # without the lookahead, $ would also stand before a last newline
    floor_divide="(({0}) - PMOD({0}, {1})) / {1}",
    quotient="CAST((top DIV bottom) AS DECIMAL(38, 0))",  # DIV gives 64 bits, which the quotient of a term has
    weekday="DOW_ISO",
    hexadecimal="CAST(CONV({}, 16, 10) AS DECIMAL(38, 0))",
    read_whole="TRY_CAST(TRIM({}) AS DECIMAL(38, 0))",
    whole_of_wide="{}",
    whole_of_decimal="CASE WHEN {0} % 1 = 0 THEN CAST({0} AS DECIMAL(38, 0)) END",
    read_real="TRY_CAST(TRIM({}) AS DOUBLE)",
    from_decimal="CAST({} AS DOUBLE)",
    read_date="TRY_CAST({} AS DATE)",
    days="CAST(DATEDIFF({}, DATE '1970-01-01') AS BIGINT)",
    read_time="TRY_CAST({} AS TIMESTAMP_NTZ)",
    micros="UNIX_MICROS(CAST({} AS TIMESTAMP))",
    nanos=None,
    zoned="TIMESTAMP",
    unzoned="TIMESTAMP_NTZ",
    tame="{}",
    # REPLACE compares bytes; a regular expression compares characters and reads every invalid byte as \ufffd
    readable=(
        "CASE WHEN REPLACE({0}, '\ufffd', '') = REGEXP_REPLACE({0}, '\ufffd', '') AND NOT CONTAINS({0}, CHAR(0)) "
        "THEN {0} END"
    ),
    tried="{}",
    quote="`",
    backslashed=True,
)
