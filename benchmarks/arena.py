"""Lets the contenders of a case play by turns, A B C A B C ..., and measures each while all others are stopped."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from .contender import Case, Contender, contenders
from .worker import LEFT_OUT, NOT_INSTALLED

ROOT = Path(__file__).resolve().parent.parent
SETTLE_SECONDS = 0.05
"""Before a round, for what was in flight when the process was stopped to land."""
CLOSE_SECONDS = 10
PATIENCE_SECONDS = 120
"""What a worker may take for an answer, beyond the seconds that it was told to play."""


@dataclass(frozen=True)
class Round:
    """What one contender did in one round."""

    steps: int
    wall: float
    cpu: float
    """CPU seconds of the contender, its threads and its child processes."""
    foreign: float
    """CPUs kept busy by everything else on the machine."""

    @property
    def speed(self) -> float:
        """Steps a second."""
        return self.steps / self.wall


@dataclass
class Result:
    """A contender in a case."""

    name: str
    label: str
    kind: str
    threads: int
    version: str = ""
    absent: str = ""
    """Why there are no rounds."""
    rounds: list[Round] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether it should have rounds and has none."""
        return bool(self.absent) and not self.absent.startswith((NOT_INSTALLED, LEFT_OUT))

    @property
    def speed(self) -> float:
        """The median of the rounds."""
        return median(one.speed for one in self.rounds) if self.rounds else 0.0


class WorkerError(Exception):
    """A worker that can't go on, and why."""


class Worker:
    """The process of one contender; see the module worker."""

    def __init__(self, interpreter: str) -> None:
        self._stderr = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - close() closes it
        self._process = subprocess.Popen(
            [interpreter, "-m", f"{__package__}.worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            process_group=0,  # Ctrl-C is for us; the end of its input tells the worker
        )

    def ask(self, request: Any, seconds: float = 0) -> dict[str, Any]:
        """Sends a line and waits for the answer, which shall take about so long.

        Raises:
            WorkerError: the process has ended, does not answer, or something is missing.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            # A line is written whole, and nothing else comes before the next request: readline() won't wait.
            if not select.select([self._process.stdout], [], [], seconds + PATIENCE_SECONDS)[0]:
                raise WorkerError(f"failed: no answer within {seconds + PATIENCE_SECONDS:.0f} s")
            line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._stderr.seek(0)
            last = (self._stderr.read().split("\n\n")[-1].strip().splitlines() or [""])[-1]
            raise WorkerError(f"failed: its process ended with {status}: {last}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def freeze(self) -> None:
        """Stops it and its children, whatever they do: some never sleep."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Lets it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def close(self) -> None:
        """Ends the process."""
        self.wake()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()
        self._stderr.close()


class Contestant:
    """A contender that takes part in a case. If it fails, its result says so and it does nothing from then on."""

    def __init__(self, name: str, label: str, kind: str, case: Case, interpreters: Sequence[str]) -> None:
        """interpreters: it runs in the first that has what it needs."""
        self.result = Result(name, label, kind, case.threads)
        self._case = case
        self._interpreters = list(interpreters)
        self._worker: Worker | None = None

    def start(self) -> None:
        """Starts its process, which makes what it steps."""
        if self.result.absent:
            return
        try:
            self._worker = Worker(self._interpreters[0])
            made = self._worker.ask({"contender": self.result.name, "case": asdict(self._case)})
            self.result.version = made["version"]
        except (WorkerError, OSError) as error:
            if str(error).startswith(NOT_INSTALLED) and len(self._interpreters) > 1:
                self.stop()
                del self._interpreters[0]
                self.start()
            else:
                self._fail(str(error))

    def play(self, seconds: float, counts: bool = True) -> None:
        """Plays a round."""
        if self._worker is None:
            return
        self._worker.wake()
        time.sleep(SETTLE_SECONDS)
        busy, begin = _busy_seconds(), time.monotonic()
        try:
            answer = self._worker.ask(seconds, seconds)
        except WorkerError as error:
            self._fail(str(error))
            return
        end = time.monotonic()
        self._worker.freeze()
        if counts:
            foreign = max(0.0, (_busy_seconds() - busy - answer["cpu"]) / (end - begin))
            self.result.rounds.append(Round(answer["steps"], answer["wall"], answer["cpu"], foreign))

    def stop(self) -> None:
        """Ends its process."""
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    def _fail(self, why: str) -> None:
        self.result.absent = why
        self.result.rounds.clear()
        self.stop()


# ---- taking turns -----------------------------------------------------------


@dataclass(frozen=True)
class Arena:
    """How to measure."""

    peers_python: Sequence[str]
    """The interpreters that have the peers; our own contenders have the one that runs this."""
    rounds: int
    seconds: float
    """How long a round lasts."""
    warmup: float
    """Seconds of the round before, which isn't counted."""
    only: Sequence[str] = ()
    """Names of contenders; empty: all."""

    def play(self, case: Case, threads: Sequence[int], notify: Callable[[str], None]) -> list[Result]:
        """Measures all contenders of a case, those that obey a number of threads once for each number.

        Args:
            notify: told what is being done.
        """
        contestants = list(self._contestants(case, threads))
        try:
            if not case.once:
                for contestant in contestants:
                    notify(f"starting {contestant.result.label}")
                    contestant.start()
                    contestant.play(self.warmup, counts=False)
            for turn in range(self.rounds):
                for contestant in contestants:
                    notify(f"round {turn + 1} of {self.rounds}: {contestant.result.label}")
                    if case.once:
                        contestant.start()
                    contestant.play(self.seconds)
                    if case.once:
                        contestant.stop()
        finally:
            for contestant in contestants:
                contestant.stop()
        return [contestant.result for contestant in contestants]

    def _contestants(self, case: Case, threads: Sequence[int]) -> Iterator[Contestant]:
        for name, contender in contenders(case.family).items():
            if case.mode not in contender.modes or (self.only and name not in self.only):
                continue
            interpreters = [sys.executable] if contender.kind == "own" else self.peers_python
            for count in threads if contender.threaded else threads[-1:]:
                label = _label(contender, count, threads)
                yield Contestant(name, label, contender.kind, replace(case, threads=count), interpreters)


def _label(contender: Contender, count: int, threads: Sequence[int]) -> str:
    if not contender.threaded or len(threads) == 1:
        return contender.label
    return f"{contender.label}, {count} thread{'s' * (count > 1)}"


def _busy_seconds() -> float:
    """CPU seconds spent by the whole machine, and kept from it by the machine that hosts it."""
    user, nice, system, _, _, irq, softirq, steal, *_ = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
