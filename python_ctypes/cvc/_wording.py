"""Puts the library's messages, which name the arguments of C, into the words of Python's."""

from __future__ import annotations

import re

# A field of a struct that a function of Python fills in from an argument of its own.
_STRUCT = re.compile(r"\b(?:desc|data|params)\.(?=[a-z])")

_NAMES = {
    "base_count": "len(base)",
    "base_values": "base",
    "convert_dtype": "convert",
    "crop_count": "len(crop)",
    "crops": "crop",
    "dst_dtype": "dtype",
    "flip_code": "flipCode",
    "flip_codes": "flipCode",
    "global_scale": "globalscale",
    "global_shift": "globalshift",
    "normalize.base_count": "len(normalize.base)",
    "normalize.scale_count": "len(normalize.scale)",
    "row_align": "rowalign",
    "scale_count": "len(scale)",
    "scale_values": "scale",
    "CVC_NORMALIZE_SCALE_IS_STDDEV": "NormalizeFlags.SCALE_IS_STDDEV",
}
_NAME = re.compile(rf"\b({'|'.join(sorted(map(re.escape, _NAMES), key=len, reverse=True))})\b")

# Flags of C that are arguments of their own in Python.
_FLAGS = {
    r"\b(?:resize_)?flags has CVC_RESIZE_PREMULTIPLY_ALPHA\b": "premultiply_alpha is True",
    r"\bflags has CVC_PREPROCESS_SWAP_CHANNELS\b": "swap_channels is True",
    r"\bflags says that src is NV12\b": "nv12 says that src is NV12",
}


def in_python_words(message: str) -> str:
    """The message with the names that the argument, or its part, has in Python."""
    message = _STRUCT.sub("", message)
    for pattern, words in _FLAGS.items():
        message = re.sub(pattern, words, message)
    return _NAME.sub(lambda match: _NAMES[match[1]], message)
