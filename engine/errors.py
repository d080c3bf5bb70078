"""The engine's errors, one leaf per remedy.

EngineError
├── ModelNotFoundError (also FileNotFoundError)  name another model; nothing was started
├── ModelDamaged (also ValueError)               fetch the model again: files are missing or cut
├── ModelUnsuitable (also ValueError)            name another model: heed cannot chat with this one
├── ModelFetchError (also OSError)               the message names it: network, disk, hash; nothing was started
├── ArchitectureNotSupported (also ValueError)   choose a model of an architecture that heed knows
├── TokenizerMismatch (also ValueError)          name another teacher model; nothing was started
├── EngineStartError (also RuntimeError)         read the message: memory, disk, packages
├── EngineRestarting (also ConnectionError)      retryable: ask again, the engine is being restarted
├── EngineDown (also RuntimeError)               it died too often: the operator restarts heed
├── PromptTooLongError (also ValueError)         shorten the conversation
├── RequestRefused (also ValueError)             change the field that `param` names
│   └── ConversationRefused                      change the messages, or begin a new conversation
├── AdapterError
│   ├── AdapterLoadError (also ValueError)       serve the base adapter, tell the person
│   ├── AdapterDamaged (also ValueError)         roll back to the parent version
│   ├── BatchNotKept (also LookupError)          the version's training batch is gone, or was never kept
│   └── AdapterRefused (also ValueError)         send another file; nothing was changed
├── TeacherError                                 no better answers are written; learning goes on
│   ├── TeacherUnreachable (also ConnectionError) retryable: check curriculum.url, .model and .api_key
│   └── TeacherAnswerInvalid (also ValueError)   its reply is no answer: check the server behind curriculum.url
├── LearningImpossible (also RuntimeError)       the model is quantised: the operator names another one
├── NothingToUndo (also LookupError)             tell the person; nothing was changed
└── TrainerError (also RuntimeError)             the update failed; serving goes on
"""


class EngineError(Exception):
    """The root of all errors that the engine raises on purpose. `retryable`: the same call may succeed later."""

    retryable = False


class ModelNotFoundError(EngineError, FileNotFoundError):
    """The configured model is neither a folder nor reachable by name."""


class ModelDamaged(EngineError, ValueError):
    """A model's files are not the files that they should be."""


class ModelUnsuitable(EngineError, ValueError):
    """A model's files are whole, and heed cannot chat with it."""


class ModelFetchError(EngineError, OSError):
    """A model that heed fetches by itself could not be fetched, checked or converted."""


class ArchitectureNotSupported(EngineError, ValueError):
    """The model is of an architecture that heed does not know; nothing was started."""


class TokenizerMismatch(EngineError, ValueError):
    """The teacher model and the model do not call the same tokens by the same ids."""


class EngineStartError(EngineError, RuntimeError):
    """vLLM did not come up."""


class EngineRestarting(EngineError, ConnectionError):
    """The model process died while this call was running; it is being restarted."""

    retryable = True


class EngineGone(EngineRestarting):
    """An engine of a cluster ended or does not answer; another one has its people."""


class ClusterNotInstalled(EngineError, ImportError):
    """Ray, which runs several engines, is not installed."""


class EngineDown(EngineError, RuntimeError):
    """The model process cannot be kept alive."""


class PromptTooLongError(EngineError, ValueError):
    """Prompt and answer do not fit into the model's context."""


class RequestRefused(EngineError, ValueError):
    """vLLM cannot answer a request as it is asked. `param` names the field, if it is known."""

    def __init__(self, message: str, param: str | None) -> None:
        super().__init__(message)
        self.param = param


class ConversationRefused(RequestRefused):
    """The model's chat template does not take a conversation; `said` are its own words."""

    def __init__(self, said: object) -> None:
        reason = str(said).strip().rstrip(".") or type(said).__name__
        super().__init__(
            f"The chat template of this model refuses this conversation: {reason}. Change its messages, or begin a new "
            "conversation.",
            "messages",
        )


class AdapterError(EngineError):
    """Something is wrong with one adapter version; other people are not affected."""


class AdapterLoadError(AdapterError, ValueError):
    """vLLM cannot load this version."""


class AdapterDamaged(AdapterError, ValueError):
    """The version on disk is not the version that was written."""


class BatchNotKept(AdapterError, LookupError):
    """The training batch of this version is missing: it was imported, or made while batches were not kept."""


class AdapterRefused(AdapterError, ValueError):
    """A file is no adapter that this heed can take in; nothing was changed."""


class TeacherError(EngineError):
    """The teacher that writes better answers did not write one."""


class TeacherUnreachable(TeacherError, ConnectionError):
    """The endpoint of `curriculum.url` cannot be reached, or refuses."""

    retryable = True


class TeacherAnswerInvalid(TeacherError, ValueError):
    """The reply of the endpoint is no answer."""


class TrainerError(EngineError, RuntimeError):
    """The trainer refused a call; the message is its own."""


class LearningImpossible(EngineError, RuntimeError):
    """The model that answers cannot be trained; the message says why."""


class NothingToUndo(EngineError, LookupError):
    """The person has no lesson left to take back."""
