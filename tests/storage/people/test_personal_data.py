"""Everything heed holds about a person, and nothing about anybody else."""

from sqlmodel import SQLModel

from storage.conversations import message_roles
from storage.kinds import AccessState
from storage.people import access, api_keys, personal_data
from storage.tables import ApiKey, MessageRole, Pairing
from tests.storage.conftest import Store
from tests.storage.people.test_people import fill

ABOUT_NOBODY = {"eval_run", "setting"}


def test_no_table_is_forgotten() -> None:
    """Each table of heed is exported, or is about no person."""
    exported = {
        table.__tablename__ for table in (*personal_data._BY_USER.values(), *personal_data._BY_ACCOUNT.values())
    }
    assert exported | {"user", "platform_message", "api_key"} | ABOUT_NOBODY == set(SQLModel.metadata.tables)


def test_every_row_about_a_person_and_no_other(store: Store, ana: str, ben: str) -> None:
    """The export has a person's rows of every table, and none of another person's."""
    store.write(lambda s: fill(s, ana, "ana", "word of ana"))
    store.write(lambda s: fill(s, ben, "ben", "word of ben"))
    role = MessageRole(platform="http", chat_external_id="1", message_id="1", user_id=ana, role="reason")
    store.write(lambda s: message_roles.put(s, role))
    asked = Pairing(code="A" * 8, platform="http", account="ana", place="1", expires_at=9.0)
    store.write(lambda s: access.wait(s, asked, now_s=1.0, limit=3))
    store.write(lambda s: api_keys.add(s, ApiKey(account="ana", sha256="5ec2e7", scopes=["chat"])))
    tables = store.read(lambda s: personal_data.everything(s, ana))
    assert [name for name, rows in tables.items() if not rows] == []
    assert "word of ana" in str(tables)
    assert "word of ben" not in str(tables)
    assert "5ec2e7" not in str(tables)
    assert [row["state"] for row in tables["access"]] == [AccessState.ALLOWED]


def test_a_stranger_has_nothing(store: Store, ana: str) -> None:
    """The export of an unknown person is empty."""
    store.write(lambda s: fill(s, ana, "ana", "word of ana"))
    assert not any(store.read(lambda s: personal_data.everything(s, "")).values())
