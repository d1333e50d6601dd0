"""Runs checks, each in a process of its own, and gives a report."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from envpool_sdk.check.catalog import Check, all_checks, chosen
from envpool_sdk.check.promise import locate
from envpool_sdk.check.report import Report, Result
from envpool_sdk.check.run import Subject

_MOST_ASKED = 64  # so few that they and their answers fit into pipes, and nobody waits for the other to read
_HERE = Path(__file__).resolve().parent


class CheckerError(RuntimeError):
    """The checker itself failed, whatever the plugin is like."""


@dataclass(frozen=True)
class Target:
    """What is checked: a library, and which of its tasks."""

    library: str
    """Absolute path."""
    tasks: tuple[str, ...] = ()
    """Ids; none: all of them."""
    assets: Mapping[str, str] = field(default_factory=dict)
    """Files that the plugin may ask for, by name."""
    named: str = ""
    """As the user wrote it: for the command that repeats a check."""


class _Zygote:
    """The process from which those of checks are copied; see zygote.py."""

    def __init__(self, jobs: int) -> None:
        command = [sys.executable, "-P", str(_HERE / "zygote.py"), str(jobs), str(_HERE.parent)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us, who then end it
        )
        self._asked = 0

    def ask(self, check: str, subject: Subject, limit: float) -> int:
        """Asks for a check; gives the number that its answer will have."""
        self._asked += 1
        request = {"n": self._asked, "check": check, "subject": asdict(subject), "limit": limit}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self._asked

    def answer(self) -> dict[str, Any]:
        """The next answer, whichever check it is of."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CheckerError("the process that runs checks has died")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends it, and all that still runs in it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Checker:
    """Runs checks of one plugin. A context manager.

    Args:
        target: what is checked; see `target.find_target`.
        options: values of the task's options, by name, as strings or typed.
        seed: of all that is random in checks.
        limit: seconds after which a check is taken for hung.
        jobs: how many checks run at once; 0: as many as CPUs may be used.
    """

    def __init__(
        self, target: Target, options: Mapping[str, Any] | None = None, seed: int = 0, limit: float = 60, jobs: int = 0
    ) -> None:
        self.target, self.options, self.seed, self.limit = target, dict(options or {}), seed, limit
        self._zygote = _Zygote(jobs or len(os.sched_getaffinity(0)))

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self._zygote.close()

    def tasks(self) -> list[str]:
        """The ids of the plugin's tasks; [""] if they can't be read."""
        self._zygote.ask("tasks", self._subject(""), self.limit)
        found: list[str] = self._zygote.answer().get("tasks", [""])
        return found

    def run(self, only: Iterable[str] = (), on_result: Callable[[Result], None] | None = None) -> Report:
        """Runs the checks that `only` names (see `catalog.chosen`); all if it names none.

        Args:
            on_result: called with each result as it comes.

        Raises:
            ValueError: a word of `only` names no check.
        """
        checks, begin = chosen(only), time.monotonic()
        per_task = [check for check in checks if not check.per_plugin]
        tasks = list(self.target.tasks) or (self.tasks() if per_task else [])
        jobs = [_Job(check, "") for check in checks if check.per_plugin]
        jobs += [_Job(check, task) for task in tasks for check in per_task]
        results: dict[_Job, Result] = {}
        for job, answer in self._answers(jobs):
            results[job] = self._result(job, answer)
            if on_result:
                on_result(results[job])
        name = self.target.named or self.target.library
        return Report(name, self.seed, [results[job] for job in jobs], time.monotonic() - begin)

    def _answers(self, jobs: list[_Job]) -> Iterator[tuple[_Job, dict[str, Any]]]:
        """What comes of each job. One whose forerunner failed is not run, since it could only tell the same."""
        forerunners = _forerunners(jobs)
        followers: dict[_Job, list[_Job]] = {job: [] for job in jobs}
        for job, before in forerunners.items():
            for one in before:
                followers[one].append(job)
        outcomes: dict[_Job, str] = {}
        asked: dict[int, _Job] = {}
        ready = [job for job in jobs if not forerunners[job]]
        while ready or asked:
            if ready and len(asked) < _MOST_ASKED:
                job = ready.pop(0)
                bad = [one for one in forerunners[job] if outcomes[one] in ("failed", "blocked")]
                if not bad:
                    asked[self._zygote.ask(job.check.id, self._subject(job.task), self.limit)] = job
                    continue
                answer: dict[str, Any] = {"outcome": "blocked", "remark": f"{bad[0].check.id} failed"}
            else:
                answer = self._zygote.answer()
                job = asked.pop(answer["n"])
                if answer["outcome"] == "error":
                    raise CheckerError(f"{job.check.id} of {job.task or self.target.library}: {answer['seen']}")
            outcomes[job] = answer["outcome"]
            ready += [one for one in followers[job] if all(before in outcomes for before in forerunners[one])]
            yield job, answer

    def _result(self, job: _Job, answer: dict[str, Any]) -> Result:
        check, failed = job.check, answer["outcome"] == "failed"
        return Result(
            check=check.id,
            title=check.title,
            task=job.task,
            outcome=answer["outcome"],
            expected=(answer["expected"] or check.title) if failed else "",
            seen=answer["seen"] if failed else "",
            promise=str(locate(check.promise)),
            again=self._command(job) if failed else "",
            remark=answer.get("remark", ""),
            log=answer["log"] if failed else "",
            seconds=answer.get("seconds", 0.0),
        )

    def _command(self, job: _Job) -> str:
        words = ["envpool-sdk", "check", self.target.named or self.target.library]
        words += ["--task", job.task] if job.task else []
        for name, value in self.options.items():
            words += ["--option", f"{name}={value}"]
        return shlex.join([*words, "--only", job.check.id, "--reproduce", str(self.seed)])

    def _subject(self, task: str) -> Subject:
        return Subject(self.target.library, task, self.options, dict(self.target.assets), self.seed)


@dataclass(frozen=True)
class _Job:
    """A check of a task ("": of the plugin)."""

    check: Check
    task: str


def _forerunners(jobs: list[_Job]) -> dict[_Job, list[_Job]]:
    """For each job those of the others that must be done before it; through checks that are not among the jobs, too."""
    known = {(job.check.id, job.task): job for job in jobs}
    checks = all_checks()

    def before(check: Check, task: str) -> list[_Job]:
        found: list[_Job] = []
        for name in check.after:
            job = known.get((name, "")) or known.get((name, task))
            found += [job] if job else before(checks[name], task)
        return list(dict.fromkeys(found))

    return {job: before(job.check, job.task) for job in jobs}
