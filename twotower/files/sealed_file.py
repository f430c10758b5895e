"""Arrays and text in a safetensors file that cannot be damaged unnoticed."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from twotower.errors import UserError
from twotower.files.atomic import reason, write_atomically

FORMAT_VERSION = 1
MAX_HEADER = 2**26
DTYPES = {name: np.dtype(kind) for name, kind in {"F64": "<f8", "I64": "<i8", "F32": "<f4", "I32": "<i4"}.items()}
_UNSEALED = "0" * 64


class Contents(NamedTuple):
    """What a sealed file holds."""

    tensors: dict[str, np.ndarray]  # of one of DTYPES, perhaps not aligned in memory
    text: str


def save(path: Path, kind: str, tensors: Mapping[str, np.ndarray], text: str = "") -> None:
    """Write a sealed file of this kind, atomically."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    # Not ascontiguousarray: it makes scalars one-dimensional.
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    metadata = {"format": f"twotower.{kind}", "version": str(FORMAT_VERSION), "checksum": _UNSEALED, "text": text}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    length = len(encoded).to_bytes(8, "little")
    body = b"".join(array.tobytes() for array in arrays.values())
    sealed = encoded.replace(_UNSEALED.encode(), _checksum(length, encoded, body).encode(), 1)
    write_atomically(path, length + sealed + body)


def load(path: Path, kind: str) -> Contents:
    """Read a sealed file of this kind, or say in one sentence why it cannot be trusted."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UserError(f"{path} is not a regular file: name a twotower {kind} file.")
            length = file.read(8)
            size = int.from_bytes(length, "little")
            if len(length) < 8 or size > min(status.st_size - 8, MAX_HEADER):
                _refuse(path, kind)
            encoded = file.read(size)
            header = _parse_header(encoded, path, kind)
            # Only now: a huge foreign file is refused before it is read.
            body = file.read(status.st_size)
    except OSError as error:
        raise UserError(f"Cannot read {path}: {reason(error)}.") from error
    checksum = header["__metadata__"]["checksum"]
    if _checksum(length, encoded.replace(checksum.encode(), _UNSEALED.encode(), 1), body) != checksum:
        _refuse(path, kind)
    return Contents(_tensors(header, body, path, kind), header["__metadata__"]["text"])


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer would hang otherwise."""
    return os.open(path, flags | os.O_NONBLOCK)


def _checksum(length: bytes, encoded: bytes, body: bytes) -> str:
    """The digest of a whole file whose checksum field holds zeros."""
    digest = hashlib.blake2b(digest_size=32)
    for part in (length, encoded, body):
        digest.update(part)
    return digest.hexdigest()


def _parse_header(encoded: bytes, path: Path, kind: str) -> dict[str, Any]:
    """The header of a file that claims to be ours, of a version we know; its tensors are still unchecked."""
    try:
        header = json.loads(encoded.decode("utf-8"))
    except (ValueError, RecursionError):
        _refuse(path, kind)
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        _refuse(path, kind)
    claimed = metadata.get("format", "")
    if claimed != f"twotower.{kind}":
        found = f"a {claimed.replace('.', ' ')} file" if claimed.startswith("twotower.") else "another program's file"
        raise UserError(f"{path} is {found[:60]!r}, not a twotower {kind} file.")
    version = metadata.get("version", "")
    if version.isascii() and version.isdigit() and len(version) < 10 and int(version) > FORMAT_VERSION:
        raise UserError(
            f"{path} was made by a newer twotower (format {version}, this one reads {FORMAT_VERSION}): "
            "upgrade with pip install -U twotower"
        )
    checksum = metadata.get("checksum", "")
    well_formed = len(checksum) == 64 and set(checksum) <= set("0123456789abcdef")
    if version != str(FORMAT_VERSION) or not well_formed or "text" not in metadata:
        _refuse(path, kind)
    return header


def _tensors(header: dict[str, Any], body: bytes, path: Path, kind: str) -> dict[str, np.ndarray]:
    """Views of the body, which the header must cover exactly and in order."""
    tensors = {}
    end = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [start, stop]} if dtype in DTYPES:
                sizes_fit = all(type(size) is int and 0 <= size <= len(body) for size in shape) and len(shape) < 8
                count = math.prod(shape) if sizes_fit else -1
                size = count * DTYPES[dtype].itemsize
                if count < 0 or start != end or stop != end + size or stop > len(body):
                    _refuse(path, kind)
                tensors[name] = np.frombuffer(body, DTYPES[dtype], count, end).reshape(shape)
                end += size
            case _:
                _refuse(path, kind)
    if end != len(body):
        _refuse(path, kind)
    return tensors


def _refuse(path: Path, kind: str) -> NoReturn:
    raise UserError(f"{path} is not a twotower {kind} file, or is damaged: use another copy or make it again.")
