"""What is done before the files are written is the same for all languages: templates/common/generation.py."""

import json
import sys
from pathlib import Path

ANSWERS = json.loads({{ cookiecutter | jsonify | jsonify }})
sys.path.insert(0, str(Path(ANSWERS["_repo_dir"]).parent / "common"))
sys.dont_write_bytecode = True

import generation  # noqa: E402

generation.check(ANSWERS)
