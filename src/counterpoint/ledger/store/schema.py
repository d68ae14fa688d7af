"""The tables of a durable ledger, and how an older one is brought up to date.

A migration is a list of statements that leads from one version to the next; the first makes the tables. A ledger of a
newer version than this code knows is refused: guessing at its meaning could forget a charge. Never change a migration
that has been released, only add one.

>>> len(MIGRATIONS) == VERSION
True
"""

from counterpoint.errors import UnknownSchema

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE counterpoint_book (
            name TEXT PRIMARY KEY, number BIGINT NOT NULL, head {blob} NOT NULL, genesis {blob} NOT NULL,
            fingerprint TEXT, witnessed BIGINT NOT NULL)""",
        """CREATE TABLE counterpoint_key (
            name TEXT NOT NULL, number BIGINT NOT NULL, wrapped {blob} NOT NULL, PRIMARY KEY (name, number))""",
        """CREATE TABLE counterpoint_entry (
            name TEXT NOT NULL, number BIGINT NOT NULL, entry {blob} NOT NULL, PRIMARY KEY (name, number)){rowless}""",
        """CREATE TABLE counterpoint_row (
            name TEXT NOT NULL, path TEXT NOT NULL, version BIGINT NOT NULL, frame {blob} NOT NULL,
            node {blob}, sealed {blob}, PRIMARY KEY (name, path)){rowless}""",
        """CREATE TABLE counterpoint_request (
            name TEXT NOT NULL, request TEXT NOT NULL, path TEXT NOT NULL, entry BIGINT NOT NULL,
            digest {blob} NOT NULL, version BIGINT NOT NULL, pin TEXT NOT NULL, sampler BIGINT NOT NULL,
            seed {blob}, answer {blob}, PRIMARY KEY (name, request),
            CHECK ((seed IS NULL) <> (answer IS NULL))){rowless}""",
        """CREATE UNIQUE INDEX counterpoint_open ON counterpoint_request (name, path) WHERE seed IS NOT NULL""",
    ),
    (
        """CREATE TABLE counterpoint_items (
            name TEXT NOT NULL, start BIGINT NOT NULL, count BIGINT NOT NULL, sealed {blob} NOT NULL,
            PRIMARY KEY (name, start), CHECK (start >= 0 AND count > 0))""",
    ),
    (
        """ALTER TABLE counterpoint_row
            ADD COLUMN spent BIGINT CHECK (spent BETWEEN 0 AND 4611686018427387904)""",
    ),
    (
        """ALTER TABLE counterpoint_items ADD COLUMN request TEXT""",
        """ALTER TABLE counterpoint_items
            ADD COLUMN part BIGINT CHECK (part >= 0 AND (request IS NULL) = (part IS NULL))""",
        """CREATE UNIQUE INDEX counterpoint_sent ON counterpoint_items (name, request, part)
            WHERE request IS NOT NULL""",
    ),
    (
        """DROP INDEX counterpoint_open""",
        """CREATE UNIQUE INDEX counterpoint_open ON counterpoint_request (path, name) WHERE seed IS NOT NULL""",
        """DROP INDEX counterpoint_sent""",
        """CREATE UNIQUE INDEX counterpoint_sent ON counterpoint_items (request, part, name)
            WHERE request IS NOT NULL""",
    ),
    (
        """ALTER TABLE counterpoint_book ADD COLUMN content {blob}""",
        """ALTER TABLE counterpoint_book ADD COLUMN beside TEXT""",
    ),
    (
        """CREATE TABLE counterpoint_principal (
            name TEXT PRIMARY KEY, role TEXT NOT NULL, made BIGINT NOT NULL, ended BIGINT)""",
        """CREATE TABLE counterpoint_api_key (
            id TEXT PRIMARY KEY, principal TEXT NOT NULL, digest {blob} NOT NULL, made BIGINT NOT NULL,
            expires BIGINT, ended BIGINT)""",
    ),
)
VERSION = len(MIGRATIONS)


def statements(found: int, blob: str, rowless: str = "") -> list[str]:
    """What is to be run on a ledger of version `found` (0: an empty database) to bring it to this version."""
    if found > VERSION:
        raise UnknownSchema(
            f"this ledger has schema {found}, and this version of counterpoint knows up to {VERSION}; use a newer one"
        )
    later = MIGRATIONS[found:]
    return [statement.format(blob=blob, rowless=rowless) for migration in later for statement in migration]
