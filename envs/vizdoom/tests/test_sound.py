"""Sound as an observation: that of vizdoom's DoomGame, and what is said where the library for it is missing."""

from __future__ import annotations

import ctypes.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from doom_originals import Original
from doom_pools import raw

from envpool_vizdoom.plugin import openal


@pytest.mark.skipif(not openal(), reason="needs cyal, for its OpenAL")
@pytest.mark.parametrize("rate", ["SR_44100", "SR_11025"])
def test_same_as_vizdooms(rate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", openal())  # for vizdoom's engine; ours finds it
    settings = {"audio_sampling_rate": rate}
    samples = {"SR_44100": 1260, "SR_11025": 315}[rate]
    generator = np.random.default_rng(0)
    loudest = 0
    with Original("basic_audio", 3, tmp_path, 4, **settings) as original:
        env = raw("DoomBasicAudio-v1", frame_skip=4, seed=3, config=settings)
        frame = original.frame()
        obs, _ = env.reset()
        for _ in range(150):
            if frame.over:
                frame = original.new_episode()
                obs = env.step(np.zeros((1, 3), np.int8))[0]
            assert obs["audio"].shape == (1, 4 * samples, 2)
            np.testing.assert_array_equal(obs["audio"][0], frame.state.audio_buffer)
            np.testing.assert_array_equal(obs["screen"][0], frame.screen)
            loudest = max(loudest, int(abs(obs["audio"].astype(int)).max()))
            buttons = generator.integers(2, size=3)
            frame = original.step([float(b) for b in buttons])
            obs = env.step(buttons[None].astype(np.int8))[0]
        env.close()
    assert loudest > 1000


SILENT = """
import envpool_vizdoom.plugin
envpool_vizdoom.plugin.openal = str  # finds none
import envpool_sdk
try:
    envpool_sdk.make("DoomBasicAudio-v1").reset()
except envpool_sdk.EnvError as error:
    print(error)
envpool_sdk.make("DoomBasicAudio-v1", buffers="").reset()
"""


@pytest.mark.skipif(ctypes.util.find_library("openal") is not None, reason="the system has OpenAL")
def test_a_missing_library_is_said() -> None:
    said = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stderr
    assert "pip install 'envpool-vizdoom[audio]'" in said.stdout
