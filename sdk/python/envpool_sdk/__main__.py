"""python -m envpool_sdk: the command envpool-sdk."""

from envpool_sdk.cli import main

main()
