"""How fast our pool is beside its peers, measured by turns in one run: python -m benchmarks --help."""
