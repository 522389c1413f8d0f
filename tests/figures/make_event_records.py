#!/usr/bin/env python3
"""Writes event_records.txt, TensorBoard records from an independent implementation.

The framing and the protobuf fields follow TensorFlow's record_writer and event.proto; no
code is shared with src/figures/event_file.cc. Each line is one record in hexadecimal.
"""
import pathlib
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def record(event):
    length = struct.pack("<Q", len(event))
    return length + masked(length) + event + masked(event)


def varint(value):
    value &= (1 << 64) - 1
    groups = []
    while True:
        groups.append(value & 0x7F)
        value >>= 7
        if not value:
            return bytes([g | 0x80 for g in groups[:-1]] + groups[-1:])


def message(number, data):
    return varint(number * 8 + 2) + varint(len(data)) + data


def head(time, step):
    return b"\x09" + struct.pack("<d", time) + (b"\x10" + varint(step) if step else b"")


def scalars(time, step, values):
    summary = b""
    for tag, value in values:
        summary += message(1, message(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
    return head(time, step) + message(5, summary)


EVENTS = [
    head(1.0, 0) + message(3, b"brain.Event:2"),
    scalars(2.0, 1, [("loss", 0.5)]),
    head(3.5, 300) + message(7, b"\x08\x01"),
    scalars(1700000000.25, 123456789012, [("train/loss", float("nan")), ("ä" * 70, -1e-30)]),
]

if __name__ == "__main__":
    lines = "".join(record(event).hex() + "\n" for event in EVENTS)
    pathlib.Path(__file__).with_name("event_records.txt").write_text(lines)
