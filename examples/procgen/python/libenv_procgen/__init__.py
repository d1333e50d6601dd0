"""The sixteen games of Procgen, played through the library of its wheel.

Nothing has to be imported from here: once this package is installed, envpool_sdk and Gymnasium know its environments.
"""
