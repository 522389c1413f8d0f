#!/usr/bin/env python3
"""Reads the dashboard with Grafana's own types, and lists every field that they do not know:

    pip install grafana-foundation-sdk
    python tests/train/validate_dashboard.py docs/grafana/trireme.json

No test needs it.
"""
import json
import pathlib
import sys

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def changes(before, after, path):
    """Yields the fields of `before` that `after` lacks or has with another value."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from changes(value, after[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: unknown"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after)):
            yield from changes(old, new, f"{path}[{i}]")
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


def main():
    plugins.register_default_plugins()
    written = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(written)))
    # A description of the query for people, which Grafana writes but its types lack.
    found = [each for each in changes(written, read, "")
             if not each.endswith(".definition: unknown")]
    print("\n".join(found) or f"{len(written['panels'])} panels, no problem")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
