"""What annotations of EnvPool's users name."""

from envpool_sdk.facade import EnvPool, GymnasiumEnvPool
from envpool_sdk.specs import ArraySpec
from envpool_sdk.specs import Spec as EnvSpec

__all__ = ["ArraySpec", "EnvPool", "EnvSpec", "GymnasiumEnvPool"]
