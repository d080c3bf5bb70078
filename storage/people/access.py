"""Access decisions by platform and account number, and accounts that wait with a pairing code.

Accounts, not people: a person who was never let in is no one to heed. Times are anything that clock the caller uses.
"""

from sqlalchemy import func
from sqlmodel import Session, col, delete, select

from storage.kinds import AccessState
from storage.tables import Access, Pairing, copy_of


def state(s: Session, platform: str, account: str) -> AccessState | None:
    """Return what was decided about an account, None if nothing was."""
    row = s.get(Access, (platform, account))
    return AccessState(row.state) if row else None


def decide(s: Session, platform: str, account: str, state: AccessState, decided_by: str) -> Access:
    """Let an account in or shut it out; a code that it waits with is void."""
    s.exec(delete(Pairing).where(col(Pairing.platform) == platform, col(Pairing.account) == account))
    return s.merge(Access(platform=platform, account=account, state=state, decided_by=decided_by))


def decided(s: Session) -> list[Access]:
    """Every decision, the newest first: for the operator's list."""
    return list(s.exec(select(Access).order_by(col(Access.created_at).desc(), col(Access.account))))


def waiting(s: Session, now_s: float) -> list[Pairing]:
    """Return the codes that still hold, the oldest first: for the operator's list."""
    query = select(Pairing).where(col(Pairing.expires_at) > now_s)
    return list(s.exec(query.order_by(col(Pairing.created_at), col(Pairing.code))))


def wait(s: Session, pairing: Pairing, *, now_s: float, limit: int) -> Pairing | None:
    """Return the code an account waits with: the one it has, else the one given (the row is not touched).

    None if `limit` accounts of that platform wait already.
    """
    s.exec(delete(Pairing).where(col(Pairing.expires_at) <= now_s))
    on_platform = Pairing.platform == pairing.platform
    known = s.exec(select(Pairing).where(on_platform, Pairing.account == pairing.account)).first()
    if known is not None:
        return known
    if s.exec(select(func.count()).select_from(Pairing).where(on_platform)).one() >= limit:
        return None
    row = copy_of(pairing)
    s.add(row)
    s.flush()
    return row


def approve(s: Session, code: str, now_s: float, decided_by: str) -> Pairing | None:
    """Let the account in that waits with this code; None where no code of that kind holds."""
    found = s.get(Pairing, code)
    if found is None or found.expires_at <= now_s:
        return None
    pairing = copy_of(found)
    decide(s, found.platform, found.account, AccessState.ALLOWED, decided_by)
    return pairing
