"""The command envpool-sdk, also python -m envpool_sdk.

Nothing of it is imported by ``import envpool_sdk``, and what it needs beyond that is the extra ``cli``.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line of this process and exits.

    Exit codes: 0 all is well, 1 something failed or was found wrong, 2 the command was used wrongly, 130 Ctrl-C.
    """
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ModuleNotFoundError as error:
        sys.exit(f"envpool-sdk: the command line needs {error.name}: pip install 'envpool-sdk[cli]'")
    from envpool_sdk.cli.app import app

    app(prog_name="envpool-sdk")
