"""isinstance(env, EnvPoolMixin) holds for every pool, whatever its env_type."""

from envpool_sdk.facade import EnvPool as EnvPoolMixin

__all__ = ["EnvPoolMixin"]
