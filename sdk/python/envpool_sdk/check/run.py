"""What a check is given: the library, the task, and processes of its own."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

import numpy as np

from envpool_sdk.check import abi, memory
from envpool_sdk.check.engine import Env, Extensions, Library, Task, tasks_of
from envpool_sdk.check.finding import Finding, NotApplicable
from envpool_sdk.check.host import Host
from envpool_sdk.check.spec import Spec

T = TypeVar("T")


@dataclass
class Subject:
    """What is checked."""

    library: str
    """Absolute path."""
    task: str = ""
    """Its id; "": the first one."""
    options: dict[str, Any] = field(default_factory=dict)
    assets: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    """Of everything that is random in a check."""


@dataclass(frozen=True)
class Facts:
    """What a task's descriptor says."""

    sharing: int
    flags: int
    extensions: frozenset[str]


@dataclass
class Crumb:
    """What a check's process leaves for whoever watches it, in memory that outlives it: the last call into the plugin that
    began, and when that is to be over."""

    memory: Any  # a shared anonymous mmap
    _DEADLINE = 512  # where it is; the text is before it

    def write(self, text: str) -> None:
        data = text.encode()[:500]
        self.memory[: len(data) + 1] = data + b"\0"

    def read(self) -> str:
        return bytes(self.memory[: self._DEADLINE]).split(b"\0")[0].decode(errors="replace")

    @property
    def deadline(self) -> float:
        """On the monotonic clock; 0: none was set. A double that is aligned, so it is never read half written."""
        return memoryview(self.memory).cast("d")[self._DEADLINE // 8]

    @deadline.setter
    def deadline(self, when: float) -> None:
        memoryview(self.memory).cast("d")[self._DEADLINE // 8] = when


class Run:
    """One check on its way, in a process of its own that has not loaded the library yet.

    Attributes:
        random: what is random in the check; the same for the same seed.
        remark: a sentence for the user, beside a check that passes.
    """

    def __init__(self, subject: Subject, crumb: Crumb) -> None:
        self.subject, self.crumb = subject, crumb
        self.random = np.random.default_rng(subject.seed)
        self.remark = ""

    @cached_property
    def host(self) -> Host:
        return Host(self.subject.assets)

    @cached_property
    def library(self) -> Library:
        """The library, loaded now if it was not."""
        return Library(self.subject.library)

    @cached_property
    def plugin(self) -> abi.Plugin:
        return self.library.plugin(self.host)

    @cached_property
    def raw_task(self) -> abi.Task:
        tasks = tasks_of(self.plugin)
        for task in tasks:
            if not self.subject.task or task.id == self.subject.task.encode():
                return task
        known = ", ".join((task.id or b"NULL").decode(errors="replace") for task in tasks)
        raise NotApplicable(f"the plugin has no task {self.subject.task}; it has {known}")

    @cached_property
    def task(self) -> Task:
        return self.task_with(self.host)

    def task_with(self, host: Host) -> Task:
        """The task as another host sees it."""
        return Task(self.raw_task, host, self.subject.options)

    @property
    def spec(self) -> Spec:
        return self.task.spec

    @property
    def extensions(self) -> Extensions:
        return self.task.extensions

    def env(self, seed: int | None = None, env_id: int = 0) -> Env:
        """A new env; with a seed, it is reset."""
        _ = self.spec  # a host describes before it creates
        env = self.task.create(env_id)
        if seed is not None:
            env.reset(seed)
        return env

    def generator(self) -> np.random.Generator:
        """Random numbers that are the same each time that it is called."""
        return np.random.default_rng(self.subject.seed)

    @property
    def seed(self) -> int:
        return self.subject.seed

    def hurry(self, seconds: float) -> None:
        """From now on the check is taken for hung after this many seconds, if the user does not allow less."""
        self.crumb.deadline = time.monotonic() + seconds

    # ---- what a task can be asked

    @cached_property
    def facts(self) -> Facts:
        """What the task says of itself, without loading the library here if it is not loaded yet."""
        if "library" not in self.__dict__:
            return self.elsewhere(_facts)
        names = [name for name in abi.EXTENSIONS if self.task.extension(name)]
        return Facts(self.raw_task.sharing, self.raw_task.flags, frozenset(names))

    @property
    def one_per_process(self) -> bool:
        return self.facts.sharing == abi.ONE_PER_PROCESS

    def flagged(self, flag: int) -> bool:
        return bool(self.facts.flags & flag)

    def needs(self, what: str) -> None:
        """Raises NotApplicable unless the task has what is named: an extension ("state"), "several" envs in a process,
        "free" threads, or to be "deterministic"."""
        if what == "several" and self.one_per_process:
            raise NotApplicable("sharing is EP_ONE_PER_PROCESS: a process has one env")
        if what == "free" and self.facts.sharing != abi.FREE:
            raise NotApplicable("sharing is not EP_FREE: an env stays on its thread")
        if what == "deterministic" and self.flagged(abi.TASK_NONDETERMINISTIC):
            raise NotApplicable("the task is flagged EP_TASK_NONDETERMINISTIC")
        extension = what in ("agents", "batch", "render", "state")
        if extension and f"envpool.{what}/1" not in self.facts.extensions:
            raise NotApplicable(f"the task does not offer envpool.{what}/1")

    # ---- processes

    def elsewhere(self, function: Callable[[Run], T], *, shift: bool = False) -> T:
        """What function gives in a process of its own, which loads the library anew.

        Args:
            shift: addresses there are others than here.
        """
        assert "library" not in self.__dict__, "a process that has loaded the library can't be copied"
        receiver, sender = Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            self._child(function, sender, shift)
        sender.close()
        try:
            outcome, value = receiver.recv()
        except EOFError:
            outcome, value = None, None
        _, status = os.waitpid(child, 0)
        if outcome is None:
            raise Finding("the calls return", ended(status, self.crumb.read()))
        if outcome == "raised":
            raise value
        result: T = value
        return result

    def _child(self, function: Callable[[Run], T], sender: Connection, shift: bool) -> None:
        try:
            if shift:
                # Of every size, so that no gap is left where the library or the heap would have been.
                sizes = np.random.default_rng().permutation(np.arange(1, 64))
                self._padding = [(memory.Pages(int(n) * memory.PAGE), bytearray(16 * n)) for n in sizes]
            message: tuple[str, Any] = ("value", function(Run(self.subject, self.crumb)))
        except BaseException as error:  # sent to the parent, whatever it is
            message = ("raised", error)
        try:
            sender.send(message)
        except (pickle.PicklingError, TypeError, AttributeError):
            sender.send(("raised", RuntimeError(repr(message[1]))))
        os._exit(0)


def _facts(run: Run) -> Facts:
    _ = run.library
    return run.facts


def ended(status: int, crumb: str) -> str:
    """How a process ended that should not have, as a sentence."""
    during = f" in {crumb}" if crumb else ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
        return f"{name}{during}"
    return f"the process ended by itself, with exit code {os.WEXITSTATUS(status)},{during}"
