"""The settings about accounts: who may talk to heed, and how much; who may work with its agent, and where."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

ADMIN = re.compile(r"(telegram|discord):[0-9]{1,20}|http:[A-Za-z0-9_.-]{1,32}")  # numbers, or the name of an API key
EVERYONE_ON_HTTP = "http:*"


class AccessSettings(BaseModel):
    """Access on Telegram and Discord: who may talk to heed, and how much."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["open", "allow", "pair"] = Field(
        default="pair",
        description="open (everyone), allow (accounts an admin allowed), pair (a code an admin approves)",
    )
    admins: tuple[str, ...] = Field(default=(), description='accounts by number: ["telegram:123", "discord:456"]')
    messages_per_hour: int = Field(default=60, ge=1, description="messages of one person that are answered in an hour")
    updates_per_hour: int = Field(default=30, ge=1, description="corrections of one person that are learned in an hour")

    @field_validator("admins")
    @classmethod
    def _check_admins(cls, admins: tuple[str, ...]) -> tuple[str, ...]:
        for admin in admins:
            if not ADMIN.fullmatch(admin):
                raise ValueError(f"{admin!r} is not telegram:<number>, discord:<number> or http:<name of a key>")
        return admins


class AgentSettings(BaseModel):
    """The agent in heed itself: who may work with it, and where. `heed agent` in a terminal needs none of this."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: tuple[str, ...] = Field(
        default=("http:local",),
        description='accounts that may: ["http:local", "http:ana", "telegram:123"]; "http:*" is everyone on HTTP',
    )
    folders: tuple[Path, ...] = Field(default=(), description="folders to work in, each known by its last name")
    account: str = Field(default="", description="the account that tools run as, where heed runs as root")
    scratch: Path | None = Field(
        default=None, description="where the people's own scratch folders are made (unset: in the data directory)"
    )
    scratch_mb: int = Field(default=256, ge=1, description="megabytes of each person's own scratch folder")

    @field_validator("allow")
    @classmethod
    def _check_allowed(cls, allowed: tuple[str, ...]) -> tuple[str, ...]:
        for account in allowed:
            if account != EVERYONE_ON_HTTP and not ADMIN.fullmatch(account):
                raise ValueError(f"{account!r} is not telegram:<number>, discord:<number>, http:<name> or http:*")
        return allowed

    @field_validator("folders")
    @classmethod
    def _check_folders(cls, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        names = [folder.name for folder in folders]
        for folder in folders:
            if not folder.is_absolute() or not folder.name:
                raise ValueError(f"{folder} is no whole path such as /srv/site")
            if names.count(folder.name) > 1:
                raise ValueError(f"two folders are called {folder.name!r}: their last names tell them apart")
        return folders

    def may(self, platform: str, account: str) -> bool:
        """Return True if this account may work with the agent; people behind one key are as the key itself."""
        name = f"{platform}:{account.partition('/')[0]}"
        return name in self.allow or (platform == "http" and EVERYONE_ON_HTTP in self.allow)
