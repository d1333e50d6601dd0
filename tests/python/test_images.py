"""The pool's image kernels give the bits of OpenCV, whichever instruction set they use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from envpool_sdk import _native

cv2 = pytest.importorskip("cv2")

FLAGS = {"area": cv2.INTER_AREA, "linear": cv2.INTER_LINEAR}


def isas() -> list[str]:
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return ["generic"] + ["avx2"] * ("avx2" in flags) + ["avx512"] * ("avx512_vbmi" in flags)


def picture(rng: np.random.Generator, height: int, width: int, channels: int) -> np.ndarray:
    """Noise, two levels, four levels or blocks: ties of rounding are frequent in all but the first."""
    shape = (height, width, channels)
    match rng.integers(4):
        case 0:
            return rng.integers(0, 256, shape, dtype=np.uint8)
        case 1:
            return (255 * rng.integers(0, 2, shape)).astype(np.uint8)
        case 2:
            return rng.choice(rng.integers(0, 256, 4, dtype=np.uint8), shape)
        case _:
            small = rng.integers(0, 256, (height // 7 + 1, width // 7 + 1, channels), dtype=np.uint8)
            return np.ascontiguousarray(small.repeat(7, 0).repeat(7, 1)[:height, :width])


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("interpolation", ["area", "linear"])
def test_resize_equals_opencv(interpolation: str, isa: str) -> None:
    rng = np.random.default_rng(7)
    cases = [(210, 160, 84, 84), (250, 160, 84, 84), (240, 320, 120, 160), (100, 100, 100, 100), (5, 7, 13, 3)]
    cases += [tuple(int(n) for n in rng.integers(1, 200, 4)) for _ in range(150)]
    for height, width, new_height, new_width in cases:
        channels = int(rng.choice([1, 3, 4]))
        image = picture(rng, height, width, channels)
        want = cv2.resize(image, (new_width, new_height), interpolation=FLAGS[interpolation])
        got = _native.resize(image, new_height, new_width, interpolation, isa)
        np.testing.assert_array_equal(got, want.reshape(got.shape), f"{image.shape} -> {got.shape}")


@pytest.mark.parametrize("isa", isas())
def test_gray_equals_opencv(isa: str) -> None:
    colours = np.arange(2**24, dtype=np.uint32)
    image = np.stack([colours >> 16, colours >> 8, colours], -1).astype(np.uint8).reshape(4096, 4096, 3)
    np.testing.assert_array_equal(_native.gray(image, isa), cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))


def test_bad_sizes() -> None:
    image = np.zeros((4, 4, 1), np.uint8)
    with pytest.raises(ValueError, match="size"):
        _native.resize(image, 0, 4, "area")
    with pytest.raises(ValueError, match="'nearest', 'linear', 'area'"):
        _native.resize(image, 4, 4, "cubic")
