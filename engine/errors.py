"""What can go wrong in the engine, one leaf per remedy.

EngineError
├── ModelNotFoundError (also FileNotFoundError)  name another model; nothing was started
├── EngineStartError (also RuntimeError)         read the message: memory, disk, packages
├── EngineRestarting (also ConnectionError)      retryable: ask again, the engine is being restarted
├── EngineDown (also RuntimeError)               it died too often: the operator restarts heed
├── PromptTooLongError (also ValueError)         shorten the conversation
├── AdapterError
│   ├── AdapterLoadError (also ValueError)       serve the base adapter, tell the person
│   └── AdapterDamaged (also ValueError)         roll back to the parent version
└── TrainerError (also RuntimeError)             the update failed; serving goes on
"""


class EngineError(Exception):
    """Root of everything the engine raises on purpose. `retryable`: the same call may succeed later."""

    retryable = False


class ModelNotFoundError(EngineError, FileNotFoundError):
    """The configured model is neither a folder nor reachable by name."""


class EngineStartError(EngineError, RuntimeError):
    """vLLM did not come up."""


class EngineRestarting(EngineError, ConnectionError):
    """The model process died while this call was running; it is being restarted."""

    retryable = True


class EngineDown(EngineError, RuntimeError):
    """The model process cannot be kept alive."""


class PromptTooLongError(EngineError, ValueError):
    """Prompt and answer do not fit into the model's context."""


class AdapterError(EngineError):
    """Something is wrong with one adapter version; other people are not affected."""


class AdapterLoadError(AdapterError, ValueError):
    """vLLM cannot load this version."""


class AdapterDamaged(AdapterError, ValueError):
    """The version on disk is not the version that was written."""


class TrainerError(EngineError, RuntimeError):
    """The trainer refused a call; the message is its own."""
