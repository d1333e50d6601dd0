"""python -m benchmarks.busy PLUGIN [options]: how busy asynchronous batches keep the threads.

The load is Slow-v0 of the reference plugin kitchen_sink.so: a step burns a time that its seed determines, uniform
within mean * (1 - vary) .. mean * (1 + vary). The busy share is what the steps received took together, by what the
threads had: threads * wall time. What is missing from 100 % is waiting and hand-over.
"""

from __future__ import annotations

import argparse
import os
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

import envpool_sdk


def busy_share(times: int, batch_size: int, threads: int, mean_us: float, vary: float, seconds: float) -> float:
    """The share for num_envs = times * batch_size; times 1 is the synchronous mode."""
    env = envpool_sdk.make(
        "Slow-v0",
        num_envs=times * batch_size,
        batch_size=batch_size,
        num_threads=threads,
        step_us=mean_us,
        vary=vary,
        how="burn",
    )
    actions = np.zeros(batch_size, np.int64)
    env.async_reset()
    for _ in range(10 * times):  # until all are spread in time
        env.send(actions, env.recv()[4]["env_id"])
    planned = 0.0
    begin = perf_counter()
    while (wall := perf_counter() - begin) < seconds:
        info = env.recv()[4]
        planned += float(info["planned_us"].sum())
        env.send(actions, info["env_id"])
    env.close()
    return planned * 1e-6 / (threads * wall)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("plugin", help="kitchen_sink.so, built")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--mean-us", default="50,200,1000", help="of a step (default: %(default)s)")
    parser.add_argument("--vary", type=float, default=0.8, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each figure (default: %(default)s)")
    arguments = parser.parse_args()
    envpool_sdk.load_plugin(arguments.plugin)
    table = Table(title=f"Busy share, {arguments.threads} threads, batches of {arguments.batch_size}")
    for heading in ("mean us of a step", "num_envs = batch (sync)", "2 x batch", "3 x batch"):
        table.add_column(heading, justify="right")
    for mean_us in map(float, arguments.mean_us.split(",")):
        shares = [
            busy_share(times, arguments.batch_size, arguments.threads, mean_us, arguments.vary, arguments.seconds)
            for times in (1, 2, 3)
        ]
        table.add_row(f"{mean_us:g}", *(f"{100 * share:.1f} %" for share in shares))
    Console().print(table)


if __name__ == "__main__":
    main()
