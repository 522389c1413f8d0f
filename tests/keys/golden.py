#!/usr/bin/python3
"""Computes the values of block_cipher_test.cc, passphrase_key_test.cc and token_key_test.cc with
another implementation: Python's cryptography package (Debian: python3-cryptography). Prints them
one per line."""
import base64

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

DATA_KEY = bytes(range(32))
FILE = "shard-00000.safetensors"


def derived(info, length=32, key=DATA_KEY):
    return HKDF(hashes.SHA256(), length, None, info.encode()).derive(key)


def mac(purpose, text):
    computed = hmac.HMAC(derived(f"trireme mac {purpose}"), hashes.SHA256())
    computed.update(text.encode())
    return computed.finalize()


def sealed(number, last, text):
    nonce = number.to_bytes(11, "big") + bytes([last])
    joined = AESGCM(derived(f"trireme file {FILE}")).encrypt(nonce, text.encode(), None)
    return joined[:-16].hex(), joined[-16:].hex()


def wrapped(wrapping):
    nonce = bytes(range(0x20, 0x2c))
    additional = b"trireme recipient " + derived("trireme id", 16).hex().encode()
    return nonce + AESGCM(wrapping).encrypt(nonce, DATA_KEY, additional)


print("ID", derived("trireme id", 16).hex())
print("MAC", mac("keys", "text").hex())
print("NEXT", derived("trireme id", 16, derived("trireme next 7")).hex())
print("FILE", derived(f"trireme file {FILE}").hex())
for name, values in [("FIRST", sealed(0, 0, "hello wo")), ("LAST", sealed(70000, 1, "rld"))]:
    print(name, values[0])
    print(name + "TAG", values[1])

passphrase_key = Scrypt(bytes(range(0x40, 0x50)), 32, 2**17, 8, 1).derive(b"correct horse battery")
print("PASSPHRASE", derived("trireme id", 16, passphrase_key).hex())
print("PASSPHRASEWRAPPED", base64.b64encode(wrapped(passphrase_key)).decode())
print("TOKENWRAPPED", base64.b64encode(wrapped(bytes(range(0x80, 0xa0)))).decode())
