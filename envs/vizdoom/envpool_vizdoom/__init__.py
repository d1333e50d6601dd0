"""Doom, played by ViZDoom's engine, as a plugin of envpool-sdk.

Nothing has to be imported from here: the tasks are known to envpool_sdk and Gymnasium once this package is installed.
"""
