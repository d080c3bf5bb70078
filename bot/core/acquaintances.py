"""The people behind accounts: those heed knows, and strangers, of whom it makes a person once it does what they asked.

Invariants: a refused call leaves no row; a stranger has the same id in every call until they are made, and after it;
an address makes no more people than `bot.core.newcomers` lets it.
"""

from collections import OrderedDict
from dataclasses import dataclass

from bot.core.newcomers import Newcomers
from bot.events import Author
from storage.database import Database
from storage.people import people
from storage.tables import User, new_id

KNOWN_PEOPLE = 10_000  # accounts whose person is remembered without asking storage, and as many strangers
Key = tuple[str, str]  # platform and account


@dataclass(frozen=True)
class Caller:
    """The person that an account has, or will have: `is_stranger` while there is no row of them."""

    user_id: str
    is_stranger: bool = False


class Acquaintances:
    """The people of every account that came by."""

    def __init__(self, database: Database, new_people_per_hour: int) -> None:
        self._database = database
        self._newcomers = Newcomers(new_people_per_hour)
        self._known: OrderedDict[Key, str] = OrderedDict()
        self._strangers: OrderedDict[Key, str] = OrderedDict()
        self._num_dropped = 0

    async def person(self, author: Author, *, is_learning: bool = True) -> str:
        """Return the id of the person behind an account, made on first sight (`is_learning` is its first value).

        Raises QuotaUsed if the address of a call has made too many people.
        """
        key = (author.platform, author.account)
        if self._database.is_shared:  # another gateway may have erased them
            self._known.pop(key, None)
            if user_id := (await self.known(author)).id:
                return user_id
        if key not in self._known:
            if author.address and not (await self.known(author)).id:
                self._newcomers.admit(author.address)
            user_id = await self._made(author, key, is_learning=is_learning)
            _remember(self._known, key, user_id)
            self._strangers.pop(key, None)
        return _remember(self._known, key, self._known[key])

    async def caller(self, author: Author) -> Caller:
        """Return the person behind an account; a stranger is not made, and has the id that `person` will give them.

        Raises QuotaUsed if `person` would.
        """
        key = (author.platform, author.account)
        remembered = "" if self._database.is_shared else self._known.get(key)
        user_id = remembered or (await self.known(author)).id
        if user_id:
            return Caller(user_id)
        if author.address:
            self._newcomers.check(author.address)
        return Caller(_remember(self._strangers, key, self._strangers.get(key) or new_id()), is_stranger=True)

    async def known(self, author: Author) -> User:
        """Return the person behind an account without making one: a stranger is an unstored row with an empty id."""
        found = await self._database.read(lambda s: people.find(s, author.platform, author.account))
        return found or User(id="", display_name=author.display_name, is_learning=True)

    async def _made(self, author: Author, key: Key, *, is_learning: bool) -> str:
        """Return the person's id, from storage; once more if one was erased meanwhile, who may be this one."""
        while True:
            user_id, num_dropped = self._strangers.get(key) or new_id(), self._num_dropped
            user = await self._database.write(
                lambda s, user_id=user_id: people.resolve(  # type: ignore[misc]
                    s, *key, display_name=author.display_name, is_learning=is_learning, user_id=user_id
                )
            )
            if num_dropped == self._num_dropped:
                return user.id

    def drop(self, user_id: str) -> None:
        """Remember nothing of a person any more."""
        self._num_dropped += 1
        for key in [key for key, known in self._known.items() if known == user_id]:
            del self._known[key]


def _remember(ids: OrderedDict[Key, str], key: Key, user_id: str) -> str:
    ids[key] = user_id
    ids.move_to_end(key)
    while len(ids) > KNOWN_PEOPLE:
        ids.popitem(last=False)
    return user_id
