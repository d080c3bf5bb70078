"""CLaaS's request bodies with its own ranges, and its training settings in heed's terms.

Pure. CLaaS's own values are on the scale of its engine and its models: a default, which its clients always send, is no
wish, and another rate or number of steps is so many times heed's own, as calibrated. One without use here is named with
the reason. What stands in `heed` is in heed's own terms and scale (`learn` in the configuration) and wins; any name
that CLaaS does not have is taken for one of these, too, and unknown ones are refused.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from bot.http.protocol.bodies import Body, Query
from engine.config import LearnConfig

LoraId = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Text = Annotated[str, StringConstraints(min_length=1)]

MAX_BATCH = 64  # items of one call: each is a lesson of its own
DEFAULTS: dict[str, tuple[float, ...]] = {  # of CLaaS's versions
    "learning_rate": (3e-5, 5e-5),
    "alpha": (0.5,),
    "is_clip": (5.0,),
    "max_grad_norm": (1.0,),
    "kl_reg_weight": (0.0, 0.001),
    "steps_per_batch": (4,),
}
RENAMED = {"kl_reg_weight": "kl_to_base_weight"}
WITHOUT_USE = {
    "teacher_top_k": "heed compares teacher and student on the whole vocabulary; top_k is heed's own setting",
    "teacher_mode": "the base model is the teacher, as with CLaaS's self; teacher is heed's own setting",
    "feedback_repetitions": "the teacher reads the feedback once",
}


class TrainingBody(Body):
    """How to train: CLaaS's settings in CLaaS's ranges, and any of heed's own."""

    model_config = ConfigDict(extra="allow")

    learning_rate: Annotated[float, Field(gt=0)] | None = None
    alpha: Annotated[float, Field(ge=0, le=1)] | None = None
    is_clip: Annotated[float, Field(ge=1, le=20)] | None = None
    max_grad_norm: Annotated[float, Field(ge=0)] | None = None
    kl_reg_weight: Annotated[float, Field(ge=0, le=1)] | None = None
    teacher_top_k: Annotated[int, Field(ge=10, le=100)] | None = None
    steps_per_batch: Annotated[int, Field(ge=1)] | None = None
    teacher_mode: Literal["self"] | None = None
    feedback_repetitions: Annotated[int, Field(ge=1)] | None = None
    heed: dict[str, Any] = Field(default={})

    def given(self) -> dict[str, Any]:
        """Return the settings that the client sent."""
        return {name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None}

    def settings(self, own: LearnConfig) -> dict[str, Any]:
        """Return the wishes among the sent settings in heed's terms, whose `own` ones are calibrated."""
        wishes = {name: value for name, value in self.given().items() if value not in DEFAULTS.get(name, ())}
        meant: dict[str, Any] = {}
        for name, value in wishes.items():
            if name == "learning_rate":
                meant |= {name: min(1.0, own.learning_rate * value / DEFAULTS[name][0]), "parent_rate": own.parent_rate}
            elif name == "steps_per_batch":
                meant["steps"] = max(1, round(own.steps * value / DEFAULTS[name][0]))
            elif name == "alpha":
                meant |= divergence(value)
            elif name not in (*WITHOUT_USE, "heed"):
                meant[RENAMED.get(name, name)] = value
        return meant | self.heed

    def ignored(self) -> dict[str, str]:
        """Return the sent settings without use here, each with the reason."""
        return {name: WITHOUT_USE[name] for name in self.given() if name in WITHOUT_USE}


def divergence(alpha: float) -> dict[str, Any]:
    """Return CLaaS's alpha, the teacher's weight in the mixture, as heed's divergence settings.

    At 1 CLaaS changes to the estimator on sampled tokens. At 0 its loss is always 0; the forward KL is meant.
    """
    if alpha in (0, 1):
        return {"divergence": "sampled_token" if alpha else "forward_kl"}
    return {"divergence": "jsd", "jsd_alpha": alpha}


class ItemBody(Body):
    """One answer and the feedback about it; `completion_id` names the answer if the client knows it."""

    lora_id: LoraId
    prompt: str = ""
    response: str = ""
    feedback: Text
    completion_id: Annotated[str, StringConstraints(min_length=1, max_length=128)] | None = None
    training: TrainingBody = TrainingBody()


class OrchestrationBody(Body):
    """CLaaS's wishes for its engine during training. Accepted and unused: heed trains while it answers."""

    sleep_before: bool = True
    wake_after: bool = True
    wake_on_failure: bool = True
    sleep_level: Annotated[int, Field(ge=1, le=2)] = 1


class BatchBody(Body):
    """`POST /v1/feedback` in CLaaS's form."""

    requests: Annotated[list[ItemBody], Field(min_length=1, max_length=MAX_BATCH)]
    orchestration: OrchestrationBody = OrchestrationBody()


class LoraQuery(Query):
    """The name of one adapter."""

    lora_id: LoraId


class PrefixQuery(Query):
    """The beginning of adapters' names."""

    prefix: str = ""


class InitBody(Body):
    """`POST /v1/lora/init`; fields left out follow heed's settings."""

    lora_id: LoraId
    base_model: str | None = None
    lora_r: Annotated[int, Field(ge=4, le=128)] | None = None
    lora_alpha: Annotated[int, Field(ge=8, le=256)] | None = None
    target_modules: Annotated[list[str], Field(min_length=1, max_length=16)] | None = None
