"""How a model learns, for people to read: its calibration, what of it is in use, and why a quantised model has none."""

from engine.calibration.record import Calibration
from engine.config import EngineConfig
from engine.host.architectures import Trainability
from engine.requests import ModelLearning


def overview(calibration: Calibration, config: EngineConfig, trainability: Trainability) -> ModelLearning:
    """Return the calibration as it was applied: `config` has the values that are in use."""
    return ModelLearning(
        trainability.reason,
        trainability.remedy,
        trainability.architecture,
        config.is_calibrated,
        config.learn.learning_rate,
        config.learn.steps,
        {name: getattr(config.gate, name) for name in sorted(calibration.gate)},
        calibration.figures,
    )
