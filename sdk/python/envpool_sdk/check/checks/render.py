"""envpool.render/1: pictures."""

from __future__ import annotations

from envpool_sdk.check import abi, play
from envpool_sdk.check.catalog import check
from envpool_sdk.check.engine import CallFailed, Env, pixel_bytes
from envpool_sdk.check.finding import Finding, require
from envpool_sdk.check.memory import POISONS, Guarded, unwritten
from envpool_sdk.check.run import Run

_FORMATS = {abi.RGB8: "EP_RGB8", abi.RGBA8: "EP_RGBA8", abi.DEPTH_F32: "EP_DEPTH_F32", abi.ANSI: "EP_ANSI"}
_MOST_BYTES = 1 << 26


def _formats(run: Run) -> list[int]:
    run.needs("render")
    render = run.extensions.render
    assert render is not None
    return [format_ for format_ in _FORMATS if render.formats >> format_ & 1]


def _measured(env: Env, format_: int) -> abi.Image:
    size = {"width": 64, "height": 1} if format_ == abi.ANSI else {}
    return env.measure(format=format_, **size)


@check("render.measure", "Fills width and height where they are 0", after="abi.extensions lifecycle.observe_at_end")
def measure(run: Run) -> None:
    """Every format has a size of its own choice, which it can then draw."""
    formats = _formats(run)
    render = run.extensions.render
    assert render is not None
    known = sum(1 << format_ for format_ in _FORMATS)
    require(
        bool(formats) and not render.formats & ~known, "bits of known formats, at least one", f"{render.formats:#x}"
    )
    env = run.env(run.seed)
    for format_ in formats:
        image = _measured(env, format_)
        seen = f"{image.width} x {image.height} for {_FORMATS[format_]}"
        require(image.width > 0 and image.height > 0, "measure() fills width and height", seen)
        require(image.width * image.height * pixel_bytes(format_) < _MOST_BYTES, "a picture of at most 64 MB", seen)
        again = env.measure(format=format_, width=image.width, height=image.height)
        require((again.width, again.height) == (image.width, image.height), f"the same again: {seen}", "another size")


@check("render.draw", "Draws the present state", after="render.measure")
def draw(run: Run) -> None:
    """Each format is drawn: after a reset, a step, and the end of an episode."""
    env = run.env(run.seed)
    for format_ in _formats(run):
        env.draw(_measured(env, format_))
    env.step(play.random_action(run.spec, run.random, env.observe()))
    play.reach_end(env, run.generator(), seconds=0.5)
    for format_ in _formats(run):
        env.draw(_measured(env, format_))


@check("render.written", "every pixel is written", after="render.draw")
def written(run: Run) -> None:
    """Every pixel is written."""
    env = run.env(run.seed)
    for format_ in _formats(run):
        image = _measured(env, format_)
        one, two = (env.draw(image, fill=fill) for fill in POISONS)
        missing = unwritten(one, two)
        row = pixel_bytes(format_) * image.width
        place = f"byte {missing[0] % row} of row {missing[0] // row}" if len(missing) else ""
        require(
            not len(missing),
            f"every byte of an {_FORMATS[format_]} picture is written",
            f"{place} still holds what the memory held before ({len(missing)} of {len(one)} bytes do)",
        )


@check("render.rows", "distance between rows of pixels", after="render.written")
def rows(run: Run) -> None:
    """Rows lie row_bytes apart, and what is between them stays as it is."""
    env = run.env(run.seed)
    for format_ in _formats(run):
        image, gap = _measured(env, format_), 24
        row = pixel_bytes(format_) * image.width
        close, wide = env.draw(image), env.draw(image, gap=gap)
        picture = b"".join(wide[y * (row + gap) : y * (row + gap) + row] for y in range(image.height))
        between = b"".join(wide[y * (row + gap) + row : (y + 1) * (row + gap)] for y in range(image.height))
        require(not between.strip(b"\xa5"), "nothing is written between rows", "the space between rows has changed")
        if close == env.draw(image):
            require(picture == close, "the same picture with rows further apart", "another one")


@check("render.guard", "ep_image.pixels", after="render.rows abi.exact_structs")
def guard(run: Run) -> None:
    """Nothing is written beyond the picture."""
    env = run.env(run.seed)
    for format_ in _formats(run):
        image = _measured(env, format_)
        for side in ("after", "before"):
            env.memory, env.note = (
                Guarded(side),
                f"a picture that {'ends' if side == 'after' else 'begins'} with memory",
            )
            env.draw(image)


@check("render.repeatable", "nothing of the env changes", after="render.written")
def repeatable(run: Run) -> None:
    """The same state gives the same picture."""
    run.needs("deterministic")
    env = run.env(run.seed)
    for format_ in _formats(run):
        image = _measured(env, format_)
        require(env.draw(image) == env.draw(image), "the same picture when it is drawn twice", "another one")


@check("render.pure", "nothing of the env changes", after="render.draw determinism.reseeded")
def pure(run: Run) -> None:
    """Drawing does not change what happens."""
    formats = _formats(run)
    run.needs("deterministic")
    env = run.env()
    trace = play.play(env, run.seed, run.generator(), steps=40, seconds=0.5)
    again = play.Trace(run.spec, actions=trace.actions)
    for i, frame in enumerate(play.retrace(env, run.seed, trace)):
        format_ = formats[i % len(formats)]
        env.draw(_measured(env, format_))
        frame.observation = env.observe()
        again.frames.append(frame)
    apart = play.difference(trace, again, ("not drawn", "drawn at each step"))
    require(apart is None, "the same play when it is drawn", apart or "")


@check("render.refused", "refuses (EP_E_ARGUMENT) a size, camera or format", after="render.measure")
def refused(run: Run) -> None:
    """A format or camera that can't be drawn is refused by measure()."""
    formats = _formats(run)
    env = run.env(run.seed)
    others = [format_ for format_ in (0, 1, 2, 3, 4, 99) if format_ not in formats]
    for format_ in others:
        env.note = f"format {format_}"
        _expect_refusal(env, f"the format {format_}, which is not among its formats", format=format_)
    env.note = "a camera that no task has"
    _expect_refusal(env, "camera 4000000000", format=formats[0], camera=4_000_000_000)


def _expect_refusal(env: Env, what: str, **members: int) -> None:
    try:
        env.measure(**members)
    except CallFailed as failed:
        allowed = failed.status in (abi.E_ARGUMENT, -3)
        require(allowed, f"EP_E_ARGUMENT for {what}", failed.seen)
        return
    raise Finding(f"measure() refuses {what}", "EP_OK")
