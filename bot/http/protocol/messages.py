"""The sentences in which HTTP calls are refused, and a body's errors as sentences.

Messages of the core, the engine and the storage come with their own errors.
"""

from typing import Any

from pydantic_core import ErrorDetails

# Any call
UNEXPECTED = "heed met an unexpected error. Its log has the details."
NOTHING_AT_PATH = "There is nothing at {path}."
NO_SUCH_METHOD = "{method} is not possible at {path}."
REQUEST_TOO_LARGE = "The request is larger than {limit_bytes} bytes."
FILE_TOO_LARGE = "The file is larger than {limit_bytes} bytes."
BODY_TOO_SLOW = "The body of the request came too slowly. Send it again."
UNREADABLE = "The body does not match its Content-Encoding or Transfer-Encoding."
NOT_JSON = "The body is not JSON."
NOT_AN_OBJECT = "The body is not a JSON object."
NO_FILE = "There is no file {name}."

# Who is calling
KEY_NEEDED = "An API key is needed. Send it as `Authorization: Bearer <key>`."
WRONG_KEY = "heed does not know this API key."
SCOPE_MISSING = "This API key does not have the scope {scope!r}. `heed keys add` makes one that has it."
UNKNOWN_HOST = "heed does not answer to this host name. Add it to HEED_HTTP_ALLOWED_HOSTS."
OTHER_ORIGIN = "heed accepts requests from its own page only."
NAME_TOO_LONG = "A user's name has at most 64 visible characters."
UNKNOWN_PERSON = "heed does not know this person."

# Answers
NO_EMBEDDINGS = "heed makes no embeddings. Its model only writes answers."
NO_MODEL = "There is no model {name}. Use {models}."
MODEL_IS_ADAPTER = "The model {name} is a person's adapter. Leave out user."
ONE_ANSWER = "A conversation that heed stores has one answer a turn. Leave n at 1."
ONE_MESSAGE = "heed stores this conversation. Send only the new message."
LAST_ROLE = "messages must have a message of the role user, and end with one of the role user or tool."
EMPTY_MESSAGE = "The message is empty."
EMPTY_PROMPT = "The prompt is empty."
ONE_PROMPT = "heed answers one prompt per call. For several answers to it, set n."
NO_BEST_OF = "heed does not choose among answers. For several answers, set n."
NO_TOOLS = "The model that runs does not know tools. Leave out tools, or run another model."
TOOL_NOT_FORCED = "The model that runs cannot be made to call a tool. tool_choice must be 'auto' or 'none'."
NO_SUCH_TOOL = "There is no such tool. tool_choice must name one that is in tools."
TOPS_NOT_KEPT = "heed does not keep the likeliest tokens of an answer. Leave out top_logprobs, or {header}."
KEY_REUSED = "This {header} belongs to a call with another body. Use a new one."
SCHEMA_MISSING = "There is no schema. Give one, or ask for the type 'json_object'."
TOOLS_NOT_JSON = "A tool contains a value that JSON cannot hold, or too many levels of nesting."

NO_CHAT = "There is no conversation {name}."

# Feedback
RETRY_NEEDS_WAIT = (
    "retry answers again after the lesson, so it has to wait for it. Set wait to true, or to some seconds."
)
NO_COMPLETION_ID = "completion_id is missing. It names the answer that the feedback is about."
KEY_LENGTH = "{header} must have 1 to {limit} characters."
NO_COMMAND = "A command starts with a slash. /help lists the commands."

# CLaaS
LORA_ID = "lora_id must be a name, or several names with slashes between them."
NO_ADAPTER = "There is no adapter {name}. POST /v1/lora/init makes one."
NOTHING_LEARNED = "The adapter {name} has learned nothing yet. There is nothing to export."
OTHER_SHAPE = "The adapter {name} has learned something in another shape. Delete it first."
OTHER_MODEL = "This heed runs {model}, not {wanted}."
RANK_TOO_HIGH = "heed serves adapters up to rank {highest}. Raise HEED_HOST_MAX_LORA_RANK for a higher one."
OTHER_MODULES = "target_modules may be any of: {modules}."
SEVERAL_LORA_IDS = "All items of one call must have the same lora_id."
SEVERAL_TRAININGS = "All items of one call must have the same training."
NO_ANSWER_NAMED = "{field} is empty. Without completion_id, prompt and response name the answer."

# continualcode
EMPTY_TEXT = "The text is empty."
NO_SESSION = "There is no session {session}."
EMPTY_SESSION = "This session has no answer yet."

# Dashboards
NO_PAGE = "There is no such page."
SIGN_IN_REFUSED = "This is not the password."
TOO_MANY_TRIES = "Too many tries. Try again in {seconds} s."
SIGN_IN_FIRST = "Sign in first."
OLD_FORM = "This form belongs to another session. Load the page again."
NO_ORIGIN = "A form of the dashboards must come with its Origin."
MINUTES = "minutes must be one of {choices}."
NO_SUMMARY = "This is no summary.json of `heed eval`."
NO_ROW_NUMBER = "before must be the number of a row."
NO_PLACE = "after must be a place in the list of people, as a link to more has it."
NO_VERSION_NUMBER = "version must be a whole number."

MAX_INPUT_CHARS = 40  # of a wrong value that a message repeats
# By Pydantic's kind of error; the words after the field's name.
_WRONG_FIELD = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this call",
    "bool_type": "must be true or false{input}",
    "bool_parsing": "must be true or false{input}",
    "int_type": "must be a whole number{input}",
    "int_parsing": "must be a whole number{input}",
    "int_from_float": "must be a whole number{input}",
    "int_parsing_size": "must be a smaller number",
    "float_type": "must be a number{input}",
    "float_parsing": "must be a number{input}",
    "finite_number": "must be a finite number",
    "string_type": "must be a text{input}",
    "string_unicode": "must be valid Unicode text",
    "string_pattern_mismatch": "must match {pattern}",
    "list_type": "must be a list{input}",
    "dict_type": "must be an object{input}",
    "model_type": "must be an object{input}",
    "model_attributes_type": "must be an object{input}",
    "literal_error": "must be {expected}{input}",
    "words_only": "is of the type {kind!r}, and heed reads words. Send text alone",
    "no_content": "has no content",
    "greater_than": "must be greater than {gt}{input}",
    "greater_than_equal": "must be at least {ge}{input}",
    "less_than": "must be less than {lt}{input}",
    "less_than_equal": "must be at most {le}{input}",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
}
_EMPTY = ("string_too_short", "too_short")  # every least length in the bodies is 1


def wrong_field(param: str, error: ErrorDetails) -> str:
    """Return what is wrong with a field as a sentence: "max_tokens must be a whole number, not 'abc'."."""
    if error["type"] in _EMPTY:
        return f"{param} must not be empty."
    words = _WRONG_FIELD.get(error["type"], "is not valid")
    return f"{param} {words.format(**error.get('ctx', {}) | {'input': _input(error['input'])})}."


def _input(value: Any) -> str:
    """Return ", not 'abc'" for a short text, number, truth value or null; nothing for anything else."""
    if value is None or isinstance(value, bool):
        return f", not {str(value).lower() if value is not None else 'null'}"
    is_shown = isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 10**MAX_INPUT_CHARS)
    text = repr(value) if is_shown else ""
    return f", not {text}" if 0 < len(text) <= MAX_INPUT_CHARS else ""
