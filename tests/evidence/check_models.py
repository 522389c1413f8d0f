#!/usr/bin/env python3
"""Compares signatures of models with those of PyPI's model-signing (made with 1.1.1):

    check_models.py check FOLDER PUBLIC_KEY     verifies FOLDER/model.sig
    check_models.py make                        makes tests/evidence/golden/model and its public key

It needs `pip install model-signing pyOpenSSL`, and is no part of the tests."""
import pathlib
import sys
import tempfile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from model_signing import hashing, signing, verifying

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
SIGNATURE = "model.sig"


def check(folder, public_key):
    verifying.Config().use_elliptic_key_verifier(public_key=public_key).verify(
        pathlib.Path(folder), pathlib.Path(folder) / SIGNATURE)
    print(f"{folder}: verified by model-signing")


def make():
    model = GOLDEN / "model"
    (model / "more").mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text('{"model_type": "none"}\n')
    (model / "more" / "weights.bin").write_bytes(bytes(range(256)))
    (model / "more-notes.txt").write_text("Sorted after the folder `more` by its names, before it "
                                          "by its bytes.\n")
    key = ec.generate_private_key(ec.SECP256R1())
    with tempfile.NamedTemporaryFile() as file:
        file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                     serialization.NoEncryption()))
        file.flush()
        (model / SIGNATURE).unlink(missing_ok=True)
        signing.Config().use_elliptic_key_signer(
            private_key=pathlib.Path(file.name)).set_hashing_config(
                hashing.Config().set_ignored_paths(paths=[SIGNATURE])).sign(
                    model, model / SIGNATURE)
    (GOLDEN / "model.pub").write_bytes(key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        make()
    elif len(sys.argv) == 4 and sys.argv[1] == "check":
        check(*sys.argv[2:])
    else:
        sys.exit(__doc__)
