#!/usr/bin/env python3
"""Validates the program's bills of materials with the libraries of the two standards. No test needs
it. In a virtual environment:

    pip install 'cyclonedx-python-lib[json-validation]' spdx-tools
    python tests/app/validate_sbom.py build/release/trireme
"""

import pathlib
import subprocess
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document


def main():
    texts = {form: subprocess.run([sys.argv[1], "--version", "--sbom", form], check=True,
                                  capture_output=True, text=True).stdout
             for form in ("cyclonedx", "spdx")}
    problems = []
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(texts["cyclonedx"])
    if error:
        problems.append(f"cyclonedx: {error}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trireme.spdx.json"
        path.write_text(texts["spdx"], encoding="utf-8")
        document = parse_file(str(path))
    problems += [f"spdx: {message.validation_message}: {message.context}"
                 for message in validate_full_spdx_document(document)]
    print(*problems, sep="\n", file=sys.stderr)
    print(f"{len(document.packages)} packages, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
