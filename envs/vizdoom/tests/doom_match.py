"""vizdoom's own DoomGame as several players of one game, in lockstep: the oracle of `num_players`."""

from __future__ import annotations

import multiprocessing
import os
import socket
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

RULES = (
    "-deathmatch +sv_forcerespawn 1 +sv_noautoaim 1 +sv_respawnprotect 1 +sv_spawnfarthest 1 +sv_nocrouch 1"
    " +viz_respawn_delay 0"
)
"""What the README says are the rules of a deathmatch here."""


def play(line: Connection, scenario: str, seed: int, arguments: str, folder: Path, settings: dict[str, Any]) -> None:
    """One player, in a process of its own: for each list of buttons the frame after a tic with them."""
    from doom_originals import Original

    os.chdir(folder)
    with Original(scenario, seed, folder, 1, game_args=arguments, **settings) as original:
        line.send((os.getpid(), strip(original.frame())))
        while (buttons := line.recv()) is not None:
            line.send(strip(original.step(buttons)))


def strip(frame: Any) -> tuple[Any, dict[str, float], float]:
    """What fits through a pipe: screen, variables, reward."""
    return frame.screen, frame.variables, frame.reward


def udp_port(pid: int) -> int:
    """That of a process' first child with one."""
    while True:
        for child in psutil.Process(pid).children():
            for connection in child.net_connections("udp4"):
                return int(connection.laddr.port)


class Match:
    """Players of a scenario; player 0 is the host."""

    def __init__(self, scenario: str, players: int, seed: int, tmp_path: Path, **settings: Any) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.lines: list[Connection] = []
        self.processes = []
        arguments = f"-host {players} -port 0 -netmode 0"
        for player in range(players):
            folder = tmp_path / f"player{player}"
            folder.mkdir()
            ours, theirs = spawn.Pipe()
            process = spawn.Process(
                target=play, args=(theirs, scenario, seed, f"{arguments} {RULES}", folder, settings), daemon=True
            )
            process.start()
            self.lines.append(ours)
            self.processes.append(process)
            if player == 0:
                assert process.pid is not None
                arguments = f"-join 127.0.0.1 -port {udp_port(process.pid)}"
        begun = [(line, *line.recv()) for line in self.lines]
        begun.sort(key=lambda player: player[2][1]["PLAYER_NUMBER"])  # in the order in which they came
        self.lines = [line for line, _, _ in begun]
        self.ports = [udp_port(pid) for _, pid, _ in begun]
        self.first = [frame for _, _, frame in begun]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> Match:
        return self

    def __exit__(self, *_: object) -> None:
        for line in self.lines:
            line.send(None)
        for process in self.processes:
            process.join(30)
            process.kill()
        self.socket.close()

    def tic(self, buttons: list[list[float]]) -> list[tuple[Any, dict[str, float], float]]:
        """The frames of all players after one tic."""
        # Else an engine that hears of the host's tic before it has sent its own goes on a tic ahead (players.cpp).
        for port in self.ports[1:]:
            self.socket.sendto(b"", ("127.0.0.1", port))
        for line, pressed in zip(self.lines, buttons, strict=True):
            line.send(pressed)
        return [line.recv() for line in self.lines]
