"""envpool-sdk play: what an episode looks like, as a picture or a film."""

from __future__ import annotations

import itertools
import json as json_module
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from rich.console import Console
from rich.progress import track

from envpool_sdk.cli import arguments
from envpool_sdk.cli.words import count, plain
from envpool_sdk.makers import make

if TYPE_CHECKING:
    from envpool_sdk._native import FieldDict
    from envpool_sdk.facade import EnvPool

Picture = npt.NDArray[np.uint8]

STEPS = 200
DEFAULT_FPS = 30.0


def play(
    task: arguments.Task,
    output: Annotated[
        Path, typer.Option("--output", "-f", metavar="FILE", help=".gif, .mp4, or .png for the last picture alone.")
    ] = Path("play.gif"),
    steps: Annotated[
        int | None,
        typer.Option(min=0, help=f"How many steps; {STEPS} unless a script says.", show_default=False),
    ] = None,
    script: Annotated[
        str,
        typer.Option(
            metavar="ACTIONS",
            help="The actions instead of random ones: a JSON list, or a file that holds one. Taken in turn; discrete ones "
            "by number or label.",
            show_default=False,
        ),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Of the env and of the random actions.")] = 0,
    width: Annotated[int, typer.Option(min=0, help="Pixels; 0: the env's own.")] = 0,
    height: Annotated[int, typer.Option(min=0, help="Pixels; 0: the env's own.")] = 0,
    camera: Annotated[int, typer.Option(min=0, help="0: the default camera.")] = 0,
    scale: Annotated[int, typer.Option(min=1, max=32, help="Each pixel becomes a square of so many.")] = 1,
    fps: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=1000, help="Pictures a second; the env's own speed unless given.", show_default=False
        ),
    ] = None,
    plugin: arguments.Libraries = [],  # noqa: B006
    option: arguments.Options = [],  # noqa: B006
    json: arguments.Json = False,
) -> None:
    """Play one env and write what it looks like.

    A picture shows the start and one each step; an episode that ends is followed by the next. MP4 needs the package
    imageio-ffmpeg.

    Example: `envpool-sdk play CartPole-v1 --output pole.gif --script '["LEFT", "RIGHT"]' --steps 100`
    """
    write = _writer(output)
    made = arguments.setup(task, plugin, option, make)
    envs = make(
        task,
        seed=seed,
        render_mode="rgb_array",
        render_width=width,
        render_height=height,
        render_camera_id=camera - 1,
        **made.transforms,
        **made.options[0],
    )
    try:
        actions = _scripted(envs, script, made.describe()["action"]) if script else _random(envs, seed)
        total = len(_script(script)) if steps is None and script else STEPS if steps is None else steps
        if fps is None:
            fps = (envs.metadata["render_fps"] or DEFAULT_FPS) / int(made.transforms.get("frame_skip", 1))
        film = _Film(envs, actions, total, scale)
        console = Console(highlight=False, stderr=json)
        write(output, track(film, f"playing {task}", total + 1, console=console, disable=not console.is_terminal), fps)
    finally:
        envs.close()
    if json:
        Console().print_json(data=film.summary(output, fps))
    else:
        returns = ", ".join(f"{one:g}" for one in film.returns) or "none ended"
        size = f"{film.size[0]}x{film.size[1]}"
        shown = f"{count(film.pictures, 'picture')} of {size}, {fps:g} a second"
        if write is _write_png:
            shown = f"the last of {count(film.pictures, 'picture')}, {size}"
        console.print(f"{output}: {shown}; returns of episodes: {returns}", soft_wrap=True)


class _Film:
    """Plays while it is iterated over, one picture a step; keeps the books."""

    def __init__(self, envs: EnvPool, actions: Iterator[Any], steps: int, scale: int) -> None:
        self._envs, self._actions, self._steps, self._scale = envs, actions, steps, scale
        self.pictures = 0
        self.size = (0, 0)
        self.returns: list[float] = []
        """Of the episodes that ended; of several agents the sum."""

    def __iter__(self) -> Iterator[Picture]:
        self._envs.reset()
        yield self._picture()
        running = 0.0
        for _ in range(self._steps):
            _, reward, terminated, truncated, info = self._envs.step(next(self._actions))
            yield self._picture()
            running += float(np.sum(reward))
            if np.all(info.get("episode_over", terminated | truncated)):
                self.returns.append(running)
                running = 0.0

    def _picture(self) -> Picture:
        rendered = self._envs.render()
        assert rendered is not None  # render_mode is set
        picture: Picture = rendered[0].repeat(self._scale, axis=0).repeat(self._scale, axis=1)
        self.pictures += 1
        self.size = (picture.shape[1], picture.shape[0])
        return picture

    def summary(self, output: Path, fps: float) -> dict[str, Any]:
        return {
            "file": str(output),
            "pictures": self.pictures,
            "width": self.size[0],
            "height": self.size[1],
            "fps": fps,
            "returns": plain(self.returns),
        }


# ---- actions ----------------------------------------------------------------


def _random(envs: EnvPool, seed: int) -> Iterator[Any]:
    space = batch_space(envs.action_space, 1)
    space.seed(seed)
    while True:
        yield space.sample()


def _scripted(envs: EnvPool, script: str, fields: Sequence[FieldDict]) -> Iterator[Any]:
    """The script's actions, for ever; each a batch of one."""
    actions = itertools.cycle(_script(script))
    by_name = {field["name"]: field for field in fields}
    return (_batched(envs.action_space, action, "", by_name) for action in actions)


def _batched(space: spaces.Space[Any], action: Any, name: str, fields: Mapping[str, FieldDict]) -> Any:
    """One env's action, as JSON has it, as a batch of one. What does not fit the space is the pool's to refuse."""
    below = f"{name}/" if name else ""
    if isinstance(space, spaces.Dict) and isinstance(action, dict):
        return {
            key: _batched(space[key], part, f"{below}{key}", fields) if key in space.spaces else part
            for key, part in action.items()
        }
    if isinstance(space, spaces.Tuple) and isinstance(action, list) and len(action) == len(space):
        return tuple(_batched(part, action[i], f"{below}{i}", fields) for i, part in enumerate(space))
    labels = fields[name]["labels"] if name in fields else ()
    if not (isinstance(action, str) and labels):
        return [action]
    if action not in labels:
        raise ValueError(f"--script: {action!r} is no action; there are {', '.join(labels)}")
    start = fields[name]["start"]
    return [labels.index(action) + (0 if start is None else int(np.min(start)))]


def _script(script: str) -> list[Any]:
    """The list that is given as JSON or stands in a file. Raises ValueError."""
    try:
        text = script if script.lstrip().startswith("[") else Path(script).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"--script: neither a JSON list nor a file that can be read: {error}") from None
    try:
        actions = json_module.loads(text)
    except ValueError as error:
        raise ValueError(f"--script: no JSON: {error}") from None
    if not isinstance(actions, list) or not actions:
        raise ValueError(f"--script must be a JSON list with at least one action, not {text[:60]!r}")
    return actions


# ---- files ------------------------------------------------------------------


def _writer(output: Path) -> Callable[[Path, Any, float], None]:
    """What writes such a file. Raises typer.BadParameter for another suffix or directory, ImportError if a package is missing."""
    writers = {".png": _write_png, ".gif": _write_gif, ".mp4": _write_mp4}
    writer = writers.get(output.suffix.lower())
    if writer is None:
        raise typer.BadParameter(f"{str(output)!r} must end in {', '.join(writers)}", param_hint="--output")
    arguments.must_have_directory(output, "--output")
    package = "imageio_ffmpeg" if writer is _write_mp4 else "PIL"
    try:
        __import__(package)
    except ImportError:
        install = "imageio-ffmpeg" if writer is _write_mp4 else "envpool-sdk[cli]"
        raise ImportError(f"writing {output.suffix} needs a package: pip install '{install}'") from None
    return writer


def _write_png(path: Path, pictures: Any, fps: float) -> None:
    from PIL import Image

    for picture in pictures:
        last = picture
    Image.fromarray(last).save(path)


def _write_gif(path: Path, pictures: Any, fps: float) -> None:
    from PIL import Image

    # A palette each: a third of the memory, which holds all of them until the file is written.
    first, *others = (Image.fromarray(picture).quantize() for picture in pictures)
    first.save(path, save_all=True, append_images=others, duration=1000 / fps, loop=0)


def _write_mp4(path: Path, pictures: Any, fps: float) -> None:
    import imageio_ffmpeg

    writer = None
    try:
        for picture in pictures:
            # The codec halves the colours' resolution: both sides must be even.
            even = np.pad(picture, ((0, picture.shape[0] % 2), (0, picture.shape[1] % 2), (0, 0)), "edge")
            if writer is None:
                size = (even.shape[1], even.shape[0])
                writer = imageio_ffmpeg.write_frames(str(path), size, fps=fps, macro_block_size=2)
                writer.send(None)
            writer.send(even)
    finally:
        if writer is not None:
            writer.close()
