"""Checks of a Telegram bot before it can work; each problem names the exact switch.

A wrong token and a webhook of another person are errors; privacy mode and closed groups are told, since heed works in
private chats, and where it is mentioned, all the same.
"""

from telegram import Bot, User, WebhookInfo
from telegram.error import InvalidToken, TelegramError

from bot.channel import ChannelError
from bot.config import TelegramSettings
from bot.errors import StartError
from bot.monitoring.redaction import redact
from bot.platforms.telegram.client import TelegramClient
from bot.platforms.telegram.errors import translate

NOT_ACCEPTED = (
    "TELEGRAM_BOT_TOKEN: Telegram does not accept this token. Copy it again from @BotFather "
    "(/mybots, the bot, API Token), or unset it to run without Telegram."
)
PRIVACY_MODE = (
    "Telegram: Privacy mode is on, so in groups heed sees only commands, mentions of it and replies to it. To change "
    "that: @BotFather, /setprivacy, Disable, then remove the bot from the group and add it again."
)
NO_GROUPS = "Telegram: The bot cannot be added to groups. If it should be: @BotFather, /setjoingroups, Enable."


async def identify(bot: Bot) -> User:
    """Return who the bot is.

    Raises StartError if its token is not valid, ChannelError if Telegram does not answer.
    """
    try:
        return await bot.get_me()
    except InvalidToken:
        raise StartError(NOT_ACCEPTED) from None
    except TelegramError as error:
        raise translate(error) from error


async def check_webhook(bot: Bot, settings: TelegramSettings) -> WebhookInfo:
    """Return what Telegram knows of the webhook. Raises StartError: updates go elsewhere; ChannelError: no answer."""
    try:
        info = await bot.get_webhook_info()
    except TelegramError as error:
        raise translate(error) from error
    if problem := webhook_problem(info, settings):
        raise StartError(problem)
    return info


def webhook_problem(info: WebhookInfo, settings: TelegramSettings) -> str:
    """Return why heed would get no updates; empty if it will."""
    if not info.url or settings.webhook_url:
        return ""
    return (
        f"Telegram: This bot's updates go to a webhook, {info.url}. If nothing needs it any more, open "
        f"{settings.api_base}/bot<TELEGRAM_BOT_TOKEN>/deleteWebhook once, or set HEED_TELEGRAM_WEBHOOK_URL."
    )


def undelivered(info: WebhookInfo) -> list[str]:
    """Why updates wait that Telegram could not bring to heed's webhook."""
    if not (info.url and info.pending_update_count and info.last_error_message):
        return []
    return [
        f"Telegram: {info.pending_update_count} updates wait, since {redact(info.url)} did not take the last one "
        f"({redact(info.last_error_message)}). It has to lead to heed's port, and HEED_TELEGRAM_WEBHOOK_SECRET must be "
        "the one heed was started with."
    ]


def notices(me: User) -> list[str]:
    """Return what works less than it could."""
    found = [] if me.can_read_all_group_messages else [PRIVACY_MODE]
    return found if me.can_join_groups in (True, None) else [*found, NO_GROUPS]


async def problems(settings: TelegramSettings) -> list[str]:
    """Everything that is wrong with the bot of these settings, for `heed doctor`; changes nothing."""
    client = TelegramClient(settings)
    try:
        me = await identify(client.bot)
        info = await check_webhook(client.bot, settings)
    except (StartError, ChannelError) as error:
        return [str(error)]
    finally:
        await client.close()
    return [*undelivered(info), *notices(me)]
