"""The commands of custodians: close and reopen the data, revoke and recount a grant, refresh the data.

Each marks a row that launches and asks read, so that none of these can be decided beside it.

>>> closing = CloseCommand((), 0)
>>> closing.kind, closing.body(), CloseCommand((), 1).kind
('closing', b'["closing",[],0]', 'reopening')
"""

from msgspec.structs import replace

from counterpoint.composition.rule import Exhausted
from counterpoint.encoding import encode
from counterpoint.errors import NotAllowed
from counterpoint.ledger.commands import Admission, Command, Read, node_at, row_at
from counterpoint.ledger.state import Path, granted
from counterpoint.privacy.claims import Claim
from counterpoint.schema.versions import DeclaredData


class CloseCommand(Command, frozen=True):
    """Close the data for everyone, after an answer could not be computed; or reopen them, which a custodian does.

    `number` says how often that was done before: data are closed and reopened in turn.
    """

    number: int

    @property
    def kind(self) -> str:
        """Which of the two."""
        return "reopening" if self.number % 2 else "closing"

    def body(self) -> bytes:
        """Which of the two, and its number."""
        return encode((self.kind, self.at, self.number))

    @property
    def what(self) -> str:
        """What it means."""
        if self.number % 2:
            return "the data are open again"
        return "an answer could not be computed: nothing is launched or asked until the custodian reopens the data"

    def plan(self, read: Read) -> Admission:
        """Mark the row of the whole session, which every launch and ask reads."""
        row, (_, node) = row_at(read, self.at), node_at(read, self.at)
        if self.at or node.closings != self.number:
            raise NotAllowed(
                "another request has closed or reopened the data: look at the history, and repeat the call"
            )
        marked = row.stepped(replace(node, closings=self.number + 1))
        return Admission(self.at, marked.version, marked.cursor, row=marked, charged=marked)


class RevokeCommand(Command, frozen=True):
    """Take back a granted session: nothing more is launched or asked in it, and its charge stays."""

    @property
    def kind(self) -> str:
        """The end of a grant."""
        return "revocation"

    def body(self) -> bytes:
        """Which session."""
        return encode((self.kind, self.at))

    @property
    def what(self) -> str:
        """What it means."""
        return "nothing more is launched or asked here"

    def plan(self, read: Read) -> Admission:
        """Mark the session's row, which every request under the grant reads."""
        row, (_, node) = row_at(read, self.at), node_at(read, self.at)
        grant = granted(row)
        if grant is None:
            raise NotAllowed(f"the session at {self.at!r} was not granted to anyone")
        marked = row.stepped(replace(node, grant=replace(grant, revoked=True)))
        return Admission(self.at, marked.version, marked.cursor, row=marked, charged=marked)


class RefundCommand(Command, frozen=True):
    """Count what was launched in a revoked session in the place of its charge: what it left unused is returned."""

    number: int

    @property
    def kind(self) -> str:
        """What a grant left unused."""
        return "recount"

    def body(self) -> bytes:
        """Whose account, and which of its children."""
        return encode((self.kind, self.at, self.number))

    @property
    def what(self) -> str:
        """Which child."""
        return f"child {self.number}: its launches count in the place of its charge"

    def plan(self, read: Read) -> Admission:
        """The account with the child's launches in the place of its charge, where a theorem allows it."""
        row, (composition, node) = row_at(read, self.at), node_at(read, self.at)
        child = (*self.at, self.number)
        grant, (granted_rule, inner) = granted(row_at(read, child)), node_at(read, child)
        if grant is None or not grant.revoked:
            raise NotAllowed(f"only a revoked grant is recounted: in what is at {child!r} more may be launched")
        launched = [_claim_of(read, (*child, number)) for number in range(inner.launched)]
        account = composition.rule.refunded(node.account, granted_rule.rule, granted_rule.claim, launched)
        marked = row.stepped(replace(node, account=account))
        return Admission(self.at, marked.version, marked.cursor, row=marked, charged=marked)


class RefreshCommand(Command, frozen=True):
    """Make newer rows of the same units the version of the data that launches see from here on. The account goes on.

    `number` is the new version's, one more than the last; `fingerprint` is that of its rows and declaration.
    """

    number: int
    fingerprint: str
    declared: DeclaredData
    note: str = ""

    @property
    def kind(self) -> str:
        """A version of the data."""
        return "version"

    def body(self) -> bytes:
        """Which version, how it is recognised, what is declared about it, and the custodian's note."""
        return encode((self.kind, self.at, self.number, self.fingerprint, self.declared, self.note))

    @property
    def what(self) -> str:
        """Its number. The note is in the body: this line is shown to more people."""
        return f"version {self.number} of the data: launches see it from here on"

    def plan(self, read: Read) -> Admission:
        """Mark the row of the whole session, which every launch reads."""
        row, (composition, node) = row_at(read, self.at), node_at(read, self.at)
        if self.at or node.data_version + 1 != self.number:
            raise NotAllowed("the data were refreshed meanwhile: look at the versions, and repeat the call")
        if isinstance(composition.rule, Exhausted):
            raise NotAllowed("a part of this record was lost, and nothing more is launched: its data are not refreshed")
        marked = row.stepped(replace(node, data_version=self.number))
        return Admission(self.at, marked.version, marked.cursor, row=marked, charged=marked)


def _claim_of(read: Read, path: Path) -> Claim:
    """What a launch was charged for."""
    row = read(path)
    if row is None:
        raise NotAllowed(f"the launch at {path!r} was begun and not finished; finish it by its id, then recount")
    return row.mechanism.claim
