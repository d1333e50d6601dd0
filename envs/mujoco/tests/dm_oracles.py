"""dm_control's suite, as far as it takes to compare with it."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from dm_control import suite
from dm_control.mujoco.wrapper.mjbindings import sizes

ID_OF = {
    (domain, task): "".join(
        part if part.isupper() else part.title() for name in (domain, task) for part in name.split("_")
    )
    + "-v1"
    for domain, task in suite.ALL_TASKS
}

# Arrays of the model that belong to the env, in the order in which its state has them.
OWN: dict[str, list[str]] = {
    "finger spin": ["dof_damping", "site_rgba"],
    "finger turn_easy": ["site_pos", "site_size"],
    "finger turn_hard": ["site_pos", "site_size"],
    "fish swim": ["geom_pos"],
    "fish upright": ["geom_rgba"],
    "lqr": ["jnt_stiffness"],
    "manipulator": ["body_pos", "body_quat"],
    "point_mass hard": ["wrap_prm"],
    "quadruped escape": ["hfield_data"],
    "reacher": ["geom_pos", "geom_size"],
    "stacker": ["body_pos"],
    "swimmer": ["geom_pos", "light_pos"],
}


def _forget_arrays_that_mujoco_no_longer_has() -> None:
    """dm_control 1.0.50 lists arrays of soft bodies by name that MuJoCo 4.0 dropped; no task uses them."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    for name, struct in (("mjmodel", model), ("mjdata", mujoco.MjData(model))):
        for array in [array for array in sizes.array_sizes[name] if not hasattr(struct, array)]:
            del sizes.array_sizes[name][array]


_forget_arrays_that_mujoco_no_longer_has()


def load(domain: str, task: str, **arguments: Any) -> Any:
    """The suite's environment. It makes no picture."""
    environment = suite.load(domain, task, task_kwargs=arguments)
    own = type(environment.physics)
    environment.physics.__class__ = type(own.__name__, (own,), {"contexts": None})  # escape looks for one at a reset
    return environment


def set_state(environment: Any, domain: str, task: str, state: np.ndarray, own: bytes) -> None:
    """Begins an episode in this state: mjSTATE_INTEGRATION, and the arrays of the model that OWN names."""
    environment.reset()
    physics = environment.physics
    model, data = physics.model.ptr, physics.data.ptr
    at = 0
    for name in OWN.get(f"{domain} {task}", OWN.get(domain, [])):
        array = getattr(model, name)
        array[:] = np.frombuffer(own, array.dtype, array.size, at).reshape(array.shape)
        at += array.nbytes
    assert at == len(own)
    mujoco.mj_resetData(model, data)
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    physics.after_reset()
