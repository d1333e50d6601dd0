"""python -m envpool_sdk.as_envpool SCRIPT [ARGUMENTS...], or -m MODULE [ARGUMENTS...], as python itself takes them."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from types import TracebackType

USAGE = """usage: python -m envpool_sdk.as_envpool SCRIPT [ARGUMENTS...]
       python -m envpool_sdk.as_envpool -m MODULE [ARGUMENTS...]

Runs a script or module that was written for EnvPool: its `import envpool` gives envpool_sdk."""


def main() -> None:
    """Runs what the command line names."""
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        del arguments[0]
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(USAGE if not arguments else print(USAGE))
    target = arguments[0]
    if not is_module and not os.path.isfile(target):
        sys.exit(f"envpool_sdk.as_envpool: there is no file {target!r}")
    shims = str(Path(__file__).parent / "path")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [shims, os.environ.get("PYTHONPATH")]))
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(target))
    sys.path.insert(0 if sys.flags.safe_path else 1, shims)
    sys.argv = arguments
    try:
        if is_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except Exception as error:
        sys.excepthook(type(error), error.with_traceback(_script(error.__traceback__)), error.__traceback__)
        sys.exit(1)


def _script(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that Python would show had it run the script: without the frames of this and of runpy."""
    own = {__file__, runpy.__file__, "<frozen runpy>"}
    while traceback and traceback.tb_next and traceback.tb_frame.f_code.co_filename in own:
        traceback = traceback.tb_next
    return traceback


if __name__ == "__main__":
    main()
