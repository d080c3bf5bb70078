"""Operator and system settings that must survive a restart, by key; values are anything that JSON can say."""

from typing import Any

from sqlmodel import Session

from storage.tables import Setting


def get(s: Session, key: str, default: Any = None) -> Any:
    """Return the value of a setting, `default` if it was never put."""
    setting = s.get(Setting, key)
    return default if setting is None else setting.value


def put(s: Session, key: str, value: Any) -> None:
    """Set a setting."""
    s.merge(Setting(key=key, value=value))


def remove(s: Session, key: str) -> bool:
    """Forget a setting; False if it was never put."""
    setting = s.get(Setting, key)
    if setting is not None:
        s.delete(setting)
    return setting is not None
