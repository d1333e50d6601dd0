"""Many envs as one TorchRL environment: envpool_sdk.torchrl.PoolEnv (the extra ``torchrl``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from envpool_sdk.vector import VectorEnv

try:
    import torch
    from tensordict import NonTensorStack, TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite, MultiCategorical, NonTensor, TensorSpec, Unbounded
    from torchrl.envs import EnvBase
except ImportError as error:
    raise ImportError(f"envpool_sdk.torchrl needs TorchRL ({error}): pip install 'envpool-sdk[torchrl]'") from error


class PoolEnv(EnvBase):  # type: ignore[misc] # torchrl has no types
    """n envs of a task, stepped together, as an env of batch size [n] for TorchRL's collectors, transforms and losses.

    Observations, "terminated" and "truncated" share the memory of the pool's arrays (unsigned integers of more than 8 bits
    are copied into signed ones); with a device other than the CPU all are copied there. Keys:

    ==============================  =====================================================================
    "observation"                   of a task with one observation field; else the field's name, nested as
                                    the task's space is, a Tuple's parts below "0", "1", ...
    "action"                        the same of actions; discrete ones are numbers, not one-hot
    "reward"                        float32[n, 1]
    "done", "terminated",           bool[n, 1]; an env that failed is truncated, and `faults` tells of it
    "truncated"
    "_reset"                        bool[n, 1], to reset(): which envs to reset, all without it
    ==============================  =====================================================================

    Resets are TorchRL's business: step_and_maybe_reset() and the collectors reset the envs whose episodes have ended.
    A pool can't be pickled: collectors that run in processes of their own are given what makes one,
    ``functools.partial(PoolEnv, "Pong-v5", num_envs=8)``.
    """

    def __init__(
        self, task_id: str, num_envs: int = 1, *, device: torch.device | str | int = "cpu", **arguments: Any
    ) -> None:
        """Makes the envs, in parallel.

        Args:
            task_id: "Pong-v5" or "envpool/Pong-v5".
            num_envs: how many.
            device: where the tensors are to be.
            arguments: others of `envpool_sdk.vector.VectorEnv`, options included, but "autoreset_mode" and "copy".

        Raises:
            ValueError: unknown task or option (names the nearest), or a value that is not allowed.
            EnvError: an env can't be made.
        """
        for name in ("autoreset_mode", "copy"):
            if name in arguments:
                raise ValueError(
                    f"{task_id}: {name} is no argument of PoolEnv: TorchRL resets the envs, and keeps what a step gave"
                )
        envs = VectorEnv(num_envs, task_id=task_id, autoreset_mode=AutoresetMode.DISABLED, **arguments)
        super().__init__(device=device, batch_size=[envs.num_envs])
        self._envs = envs
        self._seed: int | None = None
        self.observation_spec = self._composite(envs.single_observation_space, "observation")
        self.full_action_spec = self._composite(envs.single_action_space, "action")
        self.reward_spec = Unbounded((*self.batch_size, 1), device=self.device)
        flag = Categorical(2, (*self.batch_size, 1), device=self.device, dtype=torch.bool)
        self.done_spec = Composite(
            done=flag, terminated=flag.clone(), truncated=flag.clone(), shape=self.batch_size, device=self.device
        )

    def _composite(self, space: spaces.Space[Any], name: str) -> Composite:
        """The spec of a whole batch; a space that is no Dict or Tuple is the entry of this name."""
        spec = _spec(space, self.device)
        if not isinstance(spec, Composite):
            spec = Composite({name: spec}, device=self.device)
        return spec.expand(self.batch_size)

    # ---- what EnvBase asks for ----

    def _set_seed(self, seed: int | None) -> None:
        """Env i has the seed s + i at the next reset."""
        self._seed = seed

    def _reset(self, tensordict: TensorDictBase | None = None, **options: Any) -> TensorDictBase:
        chosen: dict[str, Any] = dict(options)
        if tensordict is not None and (mask := tensordict.get("_reset", None)) is not None:
            chosen["reset_mask"] = mask.reshape(self.batch_size).cpu().numpy()
        observation, _ = self._envs.reset(seed=self._seed, options=chosen)
        self._seed = None
        return self._tensordict(self._observation(observation))

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        space = self._envs.single_action_space
        actions = _arrays(space, tensordict.get("action") if _parts(space) is None else tensordict)
        observation, reward, terminated, truncated, _ = self._envs.step(actions)
        return self._tensordict(
            {
                **self._observation(observation),
                "reward": self._column(reward.astype(np.float32)),
                "done": self._column(terminated | truncated),
                "terminated": self._column(terminated),
                "truncated": self._column(truncated),
            }
        )

    @staticmethod
    def _column(values: Any) -> torch.Tensor:
        return torch.from_numpy(values)[:, None]

    @staticmethod
    def _observation(values: Any) -> dict[str, Any]:
        entries = _tensors(values)
        return entries if isinstance(entries, dict) else {"observation": entries}

    def _tensordict(self, entries: dict[str, Any]) -> TensorDictBase:
        return TensorDict(entries, batch_size=self.batch_size, device=self.device)

    # ---- the rest ----

    @property
    def faults(self) -> list[tuple[int, str]]:
        """(env, message) of the latest failures of envs, at most 1000, oldest first; after close() too."""
        return self._envs.faults

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Ends the envs."""
        super().close(raise_if_closed=raise_if_closed)
        self._envs.close()


# ---- spaces -----------------------------------------------------------------

_COMPUTABLE: dict[Any, Any] = {
    np.dtype(np.uint16): np.int32,
    np.dtype(np.uint32): np.int64,
    np.dtype(np.uint64): np.int64,  # values from 2**63 on wrap
}
"""Instead of the types that PyTorch has, but computes nothing with."""


def _spec(space: spaces.Space[Any], device: torch.device | None) -> TensorSpec:
    """TorchRL's spec for a space of `envpool_sdk.spaces`. Its discrete specs begin at 0: others become bounded."""
    parts = _parts(space)
    if parts is not None:
        return Composite({key: _spec(part, device) for key, part in parts.items()}, device=device)
    if isinstance(space, spaces.Text):
        return NonTensor((), device=device, example_data="")
    dtype = torch.from_numpy(np.empty(0, _COMPUTABLE.get(space.dtype, space.dtype))).dtype
    if isinstance(space, spaces.MultiBinary):
        return Binary(shape=space.shape, device=device, dtype=dtype)
    if isinstance(space, spaces.Discrete):
        if space.start == 0:
            return Categorical(int(space.n), device=device, dtype=dtype)
        low, high = np.asarray(space.start), np.asarray(space.start + space.n - 1)
    elif isinstance(space, spaces.MultiDiscrete):
        if space.nvec.ndim == 1 and not space.start.any():
            return MultiCategorical(space.nvec.tolist(), device=device, dtype=dtype)
        low, high = space.start, space.start + space.nvec - 1
    else:
        assert isinstance(space, spaces.Box)  # there are no others
        bounded = space.bounded_below.any() or space.bounded_above.any()
        if not bounded or space.dtype == np.uint64:
            return Unbounded(space.shape, device=device, dtype=dtype)
        low, high = space.low, space.high
    low, high = (torch.as_tensor(bound).to(dtype) for bound in (low, high))
    return Bounded(low, high, space.shape, device=device, dtype=dtype)


def _parts(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]] | None:
    """The entries of a Dict or a Tuple; None for other spaces."""
    if isinstance(space, spaces.Dict):
        return dict(space.items())
    if isinstance(space, spaces.Tuple):
        return {str(i): part for i, part in enumerate(space)}
    return None


def _tensors(values: Any) -> Any:
    """A batch of observations as tensors over the same memory, nested as TensorDict has it."""
    if isinstance(values, dict):
        return {key: _tensors(part) for key, part in values.items()}
    if isinstance(values, tuple):
        if all(isinstance(part, str) for part in values):
            return NonTensorStack(*values)
        return {str(i): _tensors(part) for i, part in enumerate(values)}
    return torch.from_numpy(values.astype(_COMPUTABLE.get(values.dtype, values.dtype), copy=False))


def _arrays(space: spaces.Space[Any], values: Any) -> Any:
    """A batch of actions as the pool takes them."""
    parts = _parts(space)
    if parts is None:
        return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values.tolist()  # texts
    read = {key: _arrays(part, values.get(key)) for key, part in parts.items()}
    return tuple(read.values()) if isinstance(space, spaces.Tuple) else read
