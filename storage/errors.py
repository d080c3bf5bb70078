"""The errors of storage, one leaf per remedy.

    StorageError
    ├── DataDirectoryLocked (BlockingIOError)    another heed runs on the data directory
    ├── StorageNotWritable (PermissionError)     no permission, or a read-only disk
    ├── StorageFull (OSError)                    retryable: no space left
    ├── StorageBroken (OSError)                  the disk failed
    ├── UnsafePath (ValueError)                  a name or file that must not be followed
    ├── AlreadyWritten (FileExistsError)         an immutable directory is there already
    ├── DatabaseBusy (TimeoutError)              retryable: another program holds the database
    ├── DatabaseClosed (RuntimeError)            used after close()
    ├── DatabaseCorrupt (ValueError)             the file is damaged
    ├── DatabaseLocked (BlockingIOError)         retryable: another heed uses the server's database
    ├── DatabaseLost (ConnectionError)           retryable: the connection to the server broke
    ├── DatabaseMissing (FileNotFoundError)      adapters are there, their database is not
    │   └── DatabaseUnreachable                  no server answers, or it has no such database
    ├── DatabaseRefused (PermissionError)        the server knows no such user or password, or forbids it
    ├── DatabaseElsewhere (RuntimeError)         the database is not a file of heed's
    ├── ObjectMissing (FileNotFoundError)        the object store has no such object
    ├── ObjectStoreAway (ConnectionError)        retryable: the object store does not answer
    ├── ObjectStoreRefused (PermissionError)     the object store does not let heed in
    ├── ObjectStoreTaken (FileExistsError)       the object store holds another database's adapters
    ├── LeaseHeld (BlockingIOError)              retryable: another process of the cluster does that now
    ├── LeaseLost (PermissionError)              another process of the cluster has taken it over
    ├── SnapshotErased (FileNotFoundError)       retryable: an erasure took what a backup was reading
    ├── BackupDamaged (ValueError)               a backup is not what was written
    ├── DirectoryInUse (FileExistsError)         a backup is restored into an empty directory only
    ├── DriverMissing (ImportError)              the database URL needs a driver
    ├── SchemaUnknown (RuntimeError)             written by a newer heed
    ├── WriteInRead (TypeError)                  a read tried to change something
    ├── NotStorable (ValueError)                 a value no column can hold
    ├── ConstraintViolated (ValueError)          a row contradicts another
    ├── IdempotencyConflict (ValueError)         a key used again for something else
    ├── VersionStateError (ValueError)           an adapter version cannot go there from its state
    │   └── VersionPruned                        its files made room for newer versions
    └── RowNotFound (LookupError)                   no such row for this person
        ├── PersonNotFound
        ├── AgentWorkNotFound
        ├── ChatNotFound
        ├── CompletionNotFound
        ├── FeedbackNotFound
        ├── NoteNotFound
        ├── KeyNotFound
        ├── EvalRunNotFound
        ├── VersionNotFound
        └── UpdateNotFound

The message is what happened, followed by the leaf's `remedy`; both are shown as sentences.
"""

import re
from typing import ClassVar

_PATH = re.compile(r"(?<![\w:/.~])[~.]{0,2}/(?:[^\s/'\"(),;]+/)+([^\s/'\"(),;]*)")  # of two parts at least, and no URL


def _sentence(text: str) -> str:
    """Return a text with a capital, unless it begins with a name such as `heed.db`, and with a full stop."""
    first = text.partition(" ")[0]
    begun = text[:1].upper() + text[1:] if first.isalpha() and first != "heed" else text
    return begun if begun.endswith((".", "?")) else f"{begun}."


class StorageError(Exception):
    """Root of every error storage raises on purpose."""

    retryable: ClassVar[bool] = False
    remedy: ClassVar[str] = ""

    def __str__(self) -> str:
        what = _sentence(": ".join(str(part) for part in self.args))
        return f"{what} {_sentence(self.remedy)}" if self.remedy else what


class DataDirectoryLocked(StorageError, BlockingIOError):
    """Another running heed holds the data directory; `pid` is its process, if known."""

    remedy = "Stop that one, or give this one a data directory of its own (HEED_DATA_DIR)"

    def __init__(self, what: str, pid: int | None = None) -> None:
        super().__init__(what)
        self.pid = pid


class StorageNotWritable(StorageError, PermissionError):
    """The data directory or the database cannot be made or written."""

    remedy = "Give heed a data directory it may write to (HEED_DATA_DIR)"


class StorageFull(StorageError, OSError):
    """No space is left; nothing of the refused write was kept."""

    retryable = True
    remedy = "Free some disk space; nothing stored so far is lost"


class StorageBroken(StorageError, OSError):
    """The disk or file system failed a read or a write."""

    remedy = "Check the disk and the system log, then start heed again"


class UnsafePath(StorageError, ValueError):
    """A name leaves its directory, or a link or special file stands where a plain file belongs."""

    remedy = "Remove what was planted there; heed writes plain files only"


class AlreadyWritten(StorageError, FileExistsError):
    """An immutable directory of that name exists already."""

    remedy = "Write it under a new name; a finished directory is never changed"


class DatabaseBusy(StorageError, TimeoutError):
    """Another program or a long read held the database for too long."""

    retryable = True
    remedy = "Close other programs that have the database file open, then try again"


class ObjectMissing(StorageError, FileNotFoundError):
    """The object store has no object of that name."""

    remedy = "Look whether HEED_OBJECT_STORE names the place that it had before"


class ObjectStoreAway(StorageError, ConnectionError):
    """The object store does not answer, or breaks a call off."""

    retryable = True
    remedy = "Look whether it runs, and whether this machine reaches it; lessons wait until then"


class ObjectStoreRefused(StorageError, PermissionError):
    """The object store knows no such credentials, has no such bucket, or forbids what heed has to do."""

    remedy = "Give heed credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) that may read, write, list and delete"


class ObjectStoreTaken(StorageError, FileExistsError):
    """The object store holds the adapters of another database."""

    remedy = "Give each heed a prefix of its own (HEED_OBJECT_STORE=s3://bucket/its-name)"


class LeaseHeld(StorageError, BlockingIOError):
    """Another process of the cluster holds a lease; `owner` names it."""

    retryable = True
    remedy = "Ask that one, or wait until its lease ends"

    def __init__(self, what: str, owner: str = "") -> None:
        super().__init__(what)
        self.owner = owner


class LeaseLost(StorageError, PermissionError):
    """A process wrote what only the holder of a lease may, and is not that; nothing of the write was kept."""

    remedy = "Nothing is lost: the process that holds it now goes on"


class SnapshotErased(StorageError, FileNotFoundError):
    """A snapshot was erased together with a person whose data was in it."""

    retryable = True
    remedy = "Try again"


class DatabaseClosed(StorageError, RuntimeError):
    """The database was used after it was closed."""

    remedy = "heed is stopping; send it again after the restart"


class DatabaseCorrupt(StorageError, ValueError):
    """The database file is damaged."""

    remedy = "Nothing was changed: restore the file from a backup, or set it aside and start with an empty directory"


class DatabaseMissing(StorageError, FileNotFoundError):
    """The data directory has been used, but its database is gone or empty."""

    remedy = "Restore the database from a backup, or start with an empty data directory"


class DatabaseUnreachable(DatabaseMissing):
    """No server answers at the database URL, or it has no database of that name."""

    remedy = "Start the server and make the database, or correct HEED_DATABASE_URL"


class DatabaseRefused(StorageError, PermissionError):
    """The database server refuses the user, the password, or what heed has to do."""

    remedy = "Correct the user and the password in HEED_DATABASE_URL, and let that user make tables in the database"


class DatabaseLocked(StorageError, BlockingIOError):
    """Another running heed uses this database of the server."""

    retryable = True  # also where the other one came in while the connection was lost
    remedy = "Stop that one, or give this one a database of its own (HEED_DATABASE_URL)"


class DatabaseLost(StorageError, ConnectionError):
    """The connection to the server was lost; nothing of a write was kept, unless the message says otherwise."""

    retryable = True
    remedy = "heed connects again by itself; if that does not help, see to the server"


class DatabaseElsewhere(StorageError, RuntimeError):
    """heed backs up a database that is a file in its data directory, and this one is not."""

    remedy = "Back that one up with its own tools (PostgreSQL: pg_dump); then copy the folder `adapters`"


class BackupDamaged(StorageError, ValueError):
    """A backup is not what was written, or no backup at all."""

    remedy = "Nothing was restored: take another backup"


class DirectoryInUse(StorageError, FileExistsError):
    """Something is in the directory that a backup should be restored into."""

    remedy = "Name an empty data directory (HEED_DATA_DIR); nothing was changed"


class DriverMissing(StorageError, ImportError):
    """The database URL needs a driver that is not installed or not known."""

    remedy = "Install the driver the URL names, or leave HEED_DATABASE_URL unset to use SQLite"


class SchemaUnknown(StorageError, RuntimeError):
    """The database has a schema this heed does not know."""

    remedy = "Run the heed that wrote it or a newer one, or restore the backup made before that upgrade"


class WriteInRead(StorageError, TypeError):
    """A work given to Database.read tried to change something."""

    remedy = "Give the work to Database.write"


class NotStorable(StorageError, ValueError):
    """A value cannot be stored: a lone surrogate, a non-finite number in JSON, a too large integer."""

    remedy = "Send valid Unicode text and finite numbers"


class ConstraintViolated(StorageError, ValueError):
    """A row contradicts another: a key used twice, or a reference to nothing."""

    remedy = "Nothing was changed: check the ids"


class IdempotencyConflict(StorageError, ValueError):
    """An idempotency key was used again for something else."""

    remedy = "Use a new key for new content"


class VersionStateError(StorageError, ValueError):
    """An adapter version cannot make this move from the state it is in."""

    remedy = "Only a candidate is accepted or rejected, and only an accepted version is activated"


class VersionPruned(VersionStateError):
    """The files of a version were removed when newer ones came; its row is what is left."""

    remedy = "Choose one that is kept: /versions lists them"


class RowNotFound(StorageError, LookupError):
    """There is no such row for this person, or it is another person's."""


class PersonNotFound(RowNotFound):
    """There is no such person."""


class AgentWorkNotFound(RowNotFound):
    """There is no such session of an agent."""


class ChatNotFound(RowNotFound):
    """There is no such chat."""


class CompletionNotFound(RowNotFound):
    """There is no such answer."""


class FeedbackNotFound(RowNotFound):
    """There is no such feedback."""


class NoteNotFound(RowNotFound):
    """There is no such note."""


class KeyNotFound(RowNotFound):
    """There is no such API key."""


class EvalRunNotFound(RowNotFound):
    """There is no such run of the evaluation harness."""


class VersionNotFound(RowNotFound):
    """There is no such adapter version."""


class UpdateNotFound(RowNotFound):
    """There is no such update."""


# Errors that pass by themselves, while nothing is wrong with the rows to be stored.
PASSING = (StorageFull, DatabaseBusy, DatabaseLocked, DatabaseLost, LeaseHeld, ObjectStoreAway)
AWAY = (DatabaseLocked, DatabaseLost, ObjectStoreAway)  # a server is away, for every client


def without_folders(text: str) -> str:
    """Return a text with each path cut to its last part: where things lie on this machine is not for everyone."""
    return _PATH.sub(r"\1", text)
