"""Makes the environments that the peers live in: python benchmarks/peers.py FOLDER

FOLDER/peers has requirements-peers.txt and PufferLib, FOLDER/sample-factory has requirements-sample-factory.txt, since that
needs an older NumPy and Gymnasium. What can't be installed is said with the reason, the rest goes on.

PufferLib 3.0.0 has no wheels. Its setup builds all of its environments and downloads what some of them need; we want CartPole
alone, so the others are taken out of its source before it is built by its own setup, with its own flags. It says that it needs
older packages than the other peers; its CartPole runs with the new ones.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PUFFERLIB = "pufferlib==3.0.0"
SAMPLE_FACTORY = "sample-factory==2.1.1"
DOWNLOADS = ("raylib-5.5_webassembly", "box2d-web", "box2d-linux-amd64")
"""Folders that PufferLib's setup downloads if they are not there. The Raylib that CartPole draws with is in its source."""


def make_venv(folder: Path) -> list[str]:
    """A virtual environment; the words that run pip in it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return [str(folder / "bin/python"), "-m", "pip"]


def install(pip: list[str], *words: str, **environment: str) -> None:
    subprocess.run([*pip, "install", "--quiet", *words], check=True, env=os.environ | environment)


def install_pufferlib(pip: list[str]) -> None:
    """Builds it with CartPole alone."""
    install(pip, "setuptools<81", "wheel", "Cython", "numpy", "torch")  # what its setup imports
    with tempfile.TemporaryDirectory() as folder:
        # Downloads the source and asks it for its metadata, which fails, as NO_OCEAN breaks its setup; the source stays.
        without = {"TMPDIR": folder, "NO_OCEAN": "1", "NO_TRAIN": "1"}
        words = [
            "download",
            "--quiet",
            "--no-deps",
            "--no-clean",
            "--no-build-isolation",
            "--no-binary=:all:",
            PUFFERLIB,
        ]
        subprocess.run([*pip, *words], cwd=folder, env=os.environ | without, capture_output=True, check=False)
        found = list(Path(folder).glob("pip-*/pufferlib*/setup.py"))
        if not found:
            raise RuntimeError(f"the source of {PUFFERLIB} could not be downloaded")
        source = found[0].parent
        for name in DOWNLOADS:
            (source / name).mkdir(exist_ok=True)
        for binding in (source / "pufferlib/ocean").rglob("binding.c"):
            if binding.parent.name != "cartpole":
                binding.unlink()
        shutil.rmtree(source / "pufferlib/resources", ignore_errors=True)  # pictures and weights of the others
        install(pip, "--no-build-isolation", "--no-deps", str(source), NO_TRAIN="1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.absolute()
    peers, sampler = make_venv(folder / "peers"), make_venv(folder / "sample-factory")

    def install_sample_factory() -> None:
        install(sampler, "-r", str(HERE / "requirements-sample-factory.txt"))
        install(sampler, "--no-deps", SAMPLE_FACTORY)

    steps = {
        "the peers with wheels": lambda: install(peers, "-r", str(HERE / "requirements-peers.txt")),
        PUFFERLIB: lambda: install_pufferlib(peers),
        SAMPLE_FACTORY: install_sample_factory,
    }
    failed = 0
    for name, step in steps.items():
        print(f"{name} ...", flush=True)
        try:
            step()
        except (subprocess.CalledProcessError, RuntimeError) as error:
            failed += 1
            print(f"{name}: not installed: {error}")
    print(f"\n--peers-python {folder}/peers/bin/python,{folder}/sample-factory/bin/python")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
