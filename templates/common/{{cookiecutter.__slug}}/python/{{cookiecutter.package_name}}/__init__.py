"""{{ cookiecutter.description }}

Nothing has to be imported from here: once this package is installed, envpool_sdk and Gymnasium know its environment.
"""
