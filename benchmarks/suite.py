"""Measures the figures of docs/benchmarks.md. Each part takes less than four minutes; all go into one file of JSON."""

from __future__ import annotations

SHORT = "--threads 1,2 --rounds 5 --seconds 0.5 --warmup 0.5"
LONG = "--threads 1,2 --rounds 3 --seconds 1 --warmup 1"

PARTS = (
    # What a call costs, and what an env costs in it.
    [f"cartpole --mode sync --num-envs 1,8,64 {SHORT}"],
    [f"cartpole --mode sync --num-envs 256,1024,4096 {SHORT}"],
    # Growth of our own, and batches of those that are ready first.
    [
        f"cartpole --mode sync --num-envs 16384 --only ours,ours_in_place,ours_make_vec,pufferlib,bare {SHORT}",
        f"cartpole --mode async --num-envs 256 --batch-size 16,32,64,128 {SHORT}",
    ],
    [f"atari --game pong --mode sync --num-envs 1,8,32 {LONG}"],
    [f"atari --game pong --mode async --num-envs 32 --batch-size 4,8,16 {LONG}"],
    [f"mujoco --mode sync --num-envs 1,8,32 {LONG}", f"mujoco --mode async --num-envs 32 --batch-size 8,16 {LONG}"],
)
"""Commands of python -m benchmarks, a list for each part."""
