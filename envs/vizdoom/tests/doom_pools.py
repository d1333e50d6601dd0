"""Tasks of ours as their engine has them: no resizing, no stack, every game variable."""

from __future__ import annotations

from typing import Any

import envpool_sdk

RAW: dict[str, Any] = {
    "img_height": None,
    "img_width": None,
    "stack_num": 1,
    "screen_resolution": "",
    "channels_last": True,
    "max_buttons_pressed": 0,
    "info_variables": "all",
}


def raw(task_id: str, **options: Any) -> Any:
    return envpool_sdk.make(task_id, **{**RAW, "frame_skip": 1, **options})
