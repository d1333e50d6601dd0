"""What came of the checks, and the same as JSON and as JUnit's XML."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """What came of one check."""

    check: str
    """ "memory.written"."""
    title: str
    """What must hold."""
    task: str
    """Of which task; "": of the whole plugin."""
    outcome: str
    """ "passed" | "failed" | "skipped" (nothing to look at) | "blocked" (a check before it failed)."""
    expected: str
    seen: str
    promise: str
    """Where the headers promise it: "envpool/env.h:352 (ep_task.observe)"."""
    again: str
    """The command that runs it again."""
    remark: str
    """Why it was skipped or blocked; or a note beside one that passed."""
    log: str
    """The end of what the plugin printed."""
    seconds: float

    def message(self) -> str:
        """All that is to be said of a failure, a line each."""
        lines = [
            f"{self.check}: {self.title}",
            f"  expected: {self.expected}",
            f"  seen:     {self.seen}",
            f"  promised: {self.promise}",
            f"  again:    {self.again}",
        ]
        if self.log.strip():
            lines += ["  printed:", *(f"    {line}" for line in self.log.strip().splitlines()[-10:])]
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """All results of a plugin."""

    plugin: str
    seed: int
    results: list[Result]
    seconds: float

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results if result.outcome == "failed"]

    @property
    def ok(self) -> bool:
        """Nothing failed, and something passed."""
        return not self.failed and any(result.outcome == "passed" for result in self.results)

    def counts(self) -> dict[str, int]:
        """How many passed, failed, were skipped and blocked."""
        words = ("passed", "failed", "skipped", "blocked")
        return {word: sum(result.outcome == word for result in self.results) for word in words}

    def to_json(self) -> str:
        """An object with plugin, seed, ok, seconds, counts and results; of a result every member of `Result`."""
        results = [asdict(result) for result in self.results]
        head: dict[str, Any] = {"plugin": self.plugin, "seed": self.seed, "ok": self.ok}
        return json.dumps({**head, "seconds": round(self.seconds, 3), **self.counts(), "results": results}, indent=2)

    def to_junit(self) -> str:
        """JUnit's XML: a suite for each task, a case for each check."""
        suites = ElementTree.Element("testsuites", name="envpool-sdk check", time=f"{self.seconds:.3f}")
        for task in dict.fromkeys(result.task for result in self.results):
            results = [result for result in self.results if result.task == task]
            suite = ElementTree.SubElement(
                suites,
                "testsuite",
                name=task or self.plugin,
                tests=str(len(results)),
                failures=str(sum(result.outcome == "failed" for result in results)),
                skipped=str(sum(result.outcome in ("skipped", "blocked") for result in results)),
                time=f"{sum(result.seconds for result in results):.3f}",
            )
            for result in results:
                group, name = result.check.split(".")
                case = ElementTree.SubElement(
                    suite, "testcase", classname=group, name=name, time=f"{result.seconds:.3f}"
                )
                if result.outcome == "failed":
                    failure = ElementTree.SubElement(case, "failure", message=_xml(result.seen))
                    failure.text = _xml(result.message())
                elif result.outcome in ("skipped", "blocked"):
                    ElementTree.SubElement(case, "skipped", message=_xml(result.remark))
        ElementTree.indent(suites)
        return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)


def _xml(text: str) -> str:
    """Without the characters that XML can't hold."""
    return "".join(c if c >= " " or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
