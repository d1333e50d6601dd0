"""EnvPool.torch(): a pool that takes and gives PyTorch's tensors.

Imports PyTorch: only torch() imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from envpool_sdk.facade import EnvPool


class TorchPool:
    """An EnvPool's reset, step, send and recv, with tensors for arrays, nested alike; what is no array of numbers (texts,
    fault messages) stays as it is.

    On the CPU nothing is copied: a tensor is the memory that the pool wrote its batch to, and keeps it for as long as the
    tensor or a view of it lives. The pool writes new batches elsewhere, so tensors may be kept and changed; only those of
    a pool made with copy=False are overwritten by the next batch. On another device tensors are copies. For CUDA they go
    by way of pinned memory, on the current stream and without waiting for it.

    Actions and env_id may be on any device, and NumPy arrays or lists too.
    """

    def __init__(self, env: EnvPool, device: str | torch.device = "cpu") -> None:
        """See EnvPool.torch."""
        self.env = env
        """The pool itself: spaces, spec, config, render, ..."""
        self.device = torch.device(device)
        self._move: Callable[[torch.Tensor], torch.Tensor]
        if self.device.type == "cpu":
            self._move = lambda tensor: tensor
        elif self.device.type == "cuda":
            # The allocator of pinned memory knows the stream, and reuses a block only when the copy is done.
            self._move = lambda tensor: tensor.pin_memory().to(self.device, non_blocking=True)
        else:
            self._move = lambda tensor: tensor.to(self.device)

    def reset(
        self,
        env_id: Any = None,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> Any:
        """EnvPool.reset()."""
        return self._tensors(self.env.reset(arrays(env_id), seed=seed, options=options))

    def step(self, action: Any, env_id: Any = None) -> Any:
        """EnvPool.step()."""
        return self._tensors(self.env.step(arrays(action), arrays(env_id)))

    def async_reset(self) -> None:
        """EnvPool.async_reset()."""
        self.env.async_reset()

    def send(self, action: Any, env_id: Any = None) -> None:
        """EnvPool.send()."""
        self.env.send(arrays(action), arrays(env_id))

    def recv(self, timeout: float | None = None) -> Any:
        """EnvPool.recv()."""
        return self._tensors(self.env.recv(timeout=timeout))

    def close(self) -> None:
        """EnvPool.close()."""
        self.env.close()

    def __len__(self) -> int:
        """The number of envs."""
        return len(self.env)

    def _tensors(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype != np.object_:
            return self._move(torch.from_numpy(value))
        return _mapped(self._tensors, value)


def arrays(value: Any) -> Any:
    """The value with arrays for tensors: over the same memory if that is on the CPU."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        if tensor.dtype == torch.bfloat16:  # which NumPy has not
            tensor = tensor.float()
        return tensor.cpu().numpy()
    return _mapped(arrays, value)


def _mapped(convert: Callable[[Any], Any], value: Any) -> Any:
    """The same structure of mappings and tuples, with its leaves converted."""
    if isinstance(value, Mapping):
        return {key: convert(part) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = [convert(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
