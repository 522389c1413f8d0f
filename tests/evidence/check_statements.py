#!/usr/bin/env python3
"""Verifies the signatures of Trireme's envelopes with securesystemslib, and reads the statements in
them with in-toto-attestation, as an auditor would who has neither Trireme nor this repository:

    pip install securesystemslib in-toto-attestation cryptography
    python tests/evidence/check_statements.py PUBLIC_KEY FILE...

A FILE is the provenance of a checkpoint or dataset, a certificate of deletion, a release, or an
audit log. No test needs this script."""
import hashlib
import json
import pathlib
import sys

from cryptography.hazmat.primitives.serialization import (Encoding, PublicFormat,
                                                          load_pem_public_key)
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def load_key(path):
    key = load_pem_public_key(pathlib.Path(path).read_bytes())
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return SSlibKey.from_crypto(key, keyid=hashlib.sha256(der).hexdigest())


def envelopes(path):
    """Returns the envelopes in a file, whose lines are envelopes or lines of an audit log."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [line.get("head", line) for line in lines if "head" in line or "payload" in line]


def read_statement(payload):
    """Parses and validates a statement, and its predicate if that is of SLSA, where unknown fields
    are errors. Returns the predicate's type."""
    statement = json_format.Parse(payload, statement_pb2.Statement())
    Statement.copy_from_pb(statement).validate()
    if statement.predicate_type == "https://slsa.dev/provenance/v1":
        predicate = json_format.Parse(json_format.MessageToJson(statement.predicate),
                                      provenance_pb2.Provenance())
        for dependency in predicate.build_definition.resolved_dependencies:
            ResourceDescriptor.copy_from_pb(dependency).validate()
    return f"{statement.predicate_type}, {len(statement.subject)} subjects"


def check(path, key):
    found = envelopes(path)
    kinds = set()
    for line in found:
        envelope = Envelope.from_dict(line)
        envelope.verify([key], 1)
        kinds.add(read_statement(envelope.payload) if "in-toto" in envelope.payload_type
                  else envelope.payload_type)
    if not found:
        sys.exit(f"{path}: no envelope")
    print(f"{path}: {len(found)} signatures verified: {'; '.join(sorted(kinds))}")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    key = load_key(sys.argv[1])
    for path in sys.argv[2:]:
        check(pathlib.Path(path), key)


if __name__ == "__main__":
    main()
