"""The names by which EnvPool's users check types: envpool.python.envpool.EnvPoolMixin, envpool.python.protocol.EnvPool."""

from envpool_sdk.python import envpool, protocol

__all__ = ["envpool", "protocol"]
