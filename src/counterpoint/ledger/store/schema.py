"""The tables of a durable ledger, version 1.

The version is stored beside the tables. A ledger of a version that this code does not know is refused: guessing at its
meaning could forget a charge. `{blob}` and `{rowless}` are what the two databases spell differently.

>>> [statement.split()[2] for statement in statements("BLOB")][:2], VERSION
(['counterpoint_book', 'counterpoint_key'], 1)
"""

from counterpoint.errors import UnknownSchema

VERSION = 1
_TABLES = (
    """CREATE TABLE counterpoint_book (
        name TEXT PRIMARY KEY, number BIGINT NOT NULL, head {blob} NOT NULL, genesis {blob} NOT NULL,
        fingerprint TEXT, witnessed BIGINT NOT NULL, content {blob}, beside TEXT)""",
    """CREATE TABLE counterpoint_key (
        name TEXT NOT NULL, number BIGINT NOT NULL, wrapped {blob} NOT NULL, PRIMARY KEY (name, number))""",
    """CREATE TABLE counterpoint_entry (
        name TEXT NOT NULL, number BIGINT NOT NULL, entry {blob} NOT NULL, PRIMARY KEY (name, number)){rowless}""",
    """CREATE TABLE counterpoint_row (
        name TEXT NOT NULL, path TEXT NOT NULL, version BIGINT NOT NULL, frame {blob} NOT NULL,
        node {blob}, sealed {blob}, spent BIGINT CHECK (spent BETWEEN 0 AND 4611686018427387904),
        PRIMARY KEY (name, path)){rowless}""",
    """CREATE TABLE counterpoint_request (
        name TEXT NOT NULL, request TEXT NOT NULL, path TEXT NOT NULL, entry BIGINT NOT NULL,
        digest {blob} NOT NULL, version BIGINT NOT NULL, pin TEXT NOT NULL, sampler BIGINT NOT NULL,
        seed {blob}, answer {blob}, PRIMARY KEY (name, request),
        CHECK ((seed IS NULL) <> (answer IS NULL))){rowless}""",
    """CREATE UNIQUE INDEX counterpoint_open ON counterpoint_request (path, name) WHERE seed IS NOT NULL""",
    """CREATE TABLE counterpoint_items (
        name TEXT NOT NULL, start BIGINT NOT NULL, count BIGINT NOT NULL, sealed {blob} NOT NULL, request TEXT,
        part BIGINT CHECK (part >= 0 AND (request IS NULL) = (part IS NULL)),
        PRIMARY KEY (name, start), CHECK (start >= 0 AND count > 0))""",
    """CREATE UNIQUE INDEX counterpoint_sent ON counterpoint_items (request, part, name) WHERE request IS NOT NULL""",
    """CREATE TABLE counterpoint_principal (
        name TEXT PRIMARY KEY, role TEXT NOT NULL, made BIGINT NOT NULL, ended BIGINT)""",
    """CREATE TABLE counterpoint_api_key (
        id TEXT PRIMARY KEY, principal TEXT NOT NULL, digest {blob} NOT NULL, made BIGINT NOT NULL,
        expires BIGINT, ended BIGINT)""",
)


def statements(blob: str, rowless: str = "") -> list[str]:
    """The statements that make the tables of a new ledger."""
    return [statement.format(blob=blob, rowless=rowless) for statement in _TABLES]


def must_be_known(found: int) -> None:
    """`UnknownSchema` if a ledger has another version than this code."""
    if found != VERSION:
        raise UnknownSchema(
            f"this ledger has schema version {found}, and this release of counterpoint reads version {VERSION}; open "
            "it with the release that wrote it, or with a newer one that says how to migrate it"
        )
