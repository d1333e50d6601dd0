"""The promises of envpool/env.h, each a test: `envpool-sdk check {{ cookiecutter.env_id }}` as part of pytest."""

from envpool_sdk.testing import conformance

test_conformance = conformance("{{ cookiecutter.env_id }}")
