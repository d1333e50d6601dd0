"""What envpool_sdk reads of this package. Imports neither NumPy nor mujoco, and loads no library."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envpool_sdk.manifest import Manifest

_HERE = Path(__file__).resolve().parent

GYMNASIUM: tuple[tuple[str, int, float | None], ...] = (
    ("Ant-v5", 1000, 6000.0),
    ("HalfCheetah-v5", 1000, 4800.0),
    ("Hopper-v5", 1000, 3800.0),
    ("Humanoid-v5", 1000, None),
    ("HumanoidStandup-v5", 1000, None),
    ("InvertedDoublePendulum-v5", 1000, 9100.0),
    ("InvertedPendulum-v5", 1000, 950.0),
    ("Pusher-v5", 100, 0.0),
    ("Reacher-v5", 50, -3.75),
    ("Swimmer-v5", 1000, 360.0),
    ("Walker2d-v5", 1000, None),
)
"""Gymnasium's tasks: id, time limit and reward threshold, as Gymnasium registers them."""

DM_CONTROL: tuple[str, ...] = (
    "AcrobotSwingup-v1",
    "AcrobotSwingupSparse-v1",
    "BallInCupCatch-v1",
    "CartpoleBalance-v1",
    "CartpoleBalanceSparse-v1",
    "CartpoleSwingup-v1",
    "CartpoleSwingupSparse-v1",
    "CartpoleThreePoles-v1",
    "CartpoleTwoPoles-v1",
    "CheetahRun-v1",
    "DogFetch-v1",
    "DogRun-v1",
    "DogStand-v1",
    "DogTrot-v1",
    "DogWalk-v1",
    "FingerSpin-v1",
    "FingerTurnEasy-v1",
    "FingerTurnHard-v1",
    "FishSwim-v1",
    "FishUpright-v1",
    "HopperHop-v1",
    "HopperStand-v1",
    "HumanoidRun-v1",
    "HumanoidRunPureState-v1",
    "HumanoidStand-v1",
    "HumanoidWalk-v1",
    "HumanoidCMURun-v1",
    "HumanoidCMUStand-v1",
    "HumanoidCMUWalk-v1",
    "LqrLqr21-v1",
    "LqrLqr62-v1",
    "ManipulatorBringBall-v1",
    "ManipulatorBringPeg-v1",
    "ManipulatorInsertBall-v1",
    "ManipulatorInsertPeg-v1",
    "PendulumSwingup-v1",
    "PointMassEasy-v1",
    "PointMassHard-v1",
    "QuadrupedEscape-v1",
    "QuadrupedFetch-v1",
    "QuadrupedRun-v1",
    "QuadrupedWalk-v1",
    "ReacherEasy-v1",
    "ReacherHard-v1",
    "StackerStack2-v1",
    "StackerStack4-v1",
    "SwimmerSwimmer6-v1",
    "SwimmerSwimmer15-v1",
    "WalkerRun-v1",
    "WalkerStand-v1",
    "WalkerWalk-v1",
)
"""The tasks of dm_control's suite: domain and task. Episodes have 1000 steps, but for lqr, which has no limit."""


def manifest() -> Manifest:
    """The entry point: the library, its tasks and where its files are."""
    # Here, not above: importing envpool_sdk calls this function, so this module has to be complete by then.
    from envpool_sdk.manifest import Manifest, TaskManifest

    return Manifest(
        name="mujoco",
        library=str(_HERE / "mujoco.so"),
        abi=(1, 0),
        tasks=(
            *(TaskManifest(*row) for row in GYMNASIUM),
            *(TaskManifest(name, None if name.startswith("Lqr") else 1000) for name in DM_CONTROL),
            TaskManifest("MujocoCustom-v0", 1000),
        ),
        assets=assets,
    )


def assets() -> Mapping[str, str]:
    """Finds MuJoCo's library and the models of the tasks, importing none of the packages that have them.

    Raises:
        ImportError: MuJoCo is not installed.
    """
    found = {}
    for place in _places("mujoco"):
        for library in sorted(place.glob("libmujoco.so.*")):
            found["mujoco_library"] = str(library)  # exactly the file that `import mujoco` loads: it is mapped once
    if not found:
        raise ImportError("envpool-mujoco needs MuJoCo 4.0: pip install 'mujoco-core>=4.0,<4.1'")
    for name, package, folder in (
        ("gymnasium_models", "gymnasium", "envs/mujoco/assets"),
        ("dm_control_models", "dm_control", "suite"),
    ):
        for place in _places(package):
            if (place / folder).is_dir():
                found[name] = str(place / folder)
    return found


def _places(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [Path(place).absolute() for place in spec.submodule_search_locations or ()] if spec else []
