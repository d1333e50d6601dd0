"""Runs a script that was written for EnvPool with `envpool` meaning this package: python -m envpool_sdk.as_envpool script.py.

`path/` is put in front of the module search path, also of Python processes that the script starts; the package `envpool` in
it is what the script imports.
"""
