#!/usr/bin/env python3
"""Makes the initial corpus of network_fuzz: what the kernel says about a host with a veth interface
that is called wg0, and texts.

    unshare -n sh -c 'ip link add wg0 type veth peer name far && ip link set lo up &&
        ip link set wg0 up && ip addr add 10.8.0.1/24 dev wg0 && tests/fuzz/make_network_corpus.py'
"""
import pathlib
import socket
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus/network_fuzz"
GET_LINK, GET_ADDRESS, GET_ROUTE = 18, 22, 26
REQUEST, DUMP, DONE = 0x1, 0x300, 3
TITLE = ("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
         "timeout inode\n")
REST = (" 00000000:00000000 00:00000000 00000000     0        0 51234 1 0000000000000000 20 4 30 "
        "10 -1\n")


def ask(kind, flags, body):
    """Returns the kernel's answer: whole messages, up to DONE for a dump."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(struct.pack("IHHII", 16 + len(body), kind, REQUEST | flags, 0, 0) + body)
        answer = kernel.recv(1 << 17)
        while flags & DUMP and struct.unpack_from("IH", answer, last_of(answer))[1] != DONE:
            answer += kernel.recv(1 << 17)
        return answer


def last_of(messages):
    at = 0
    while at + (length := (struct.unpack_from("I", messages, at)[0] + 3) & ~3) < len(messages):
        at += length
    return at


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    (CORPUS / "links").write_bytes(ask(GET_LINK, DUMP, bytes(16)))
    (CORPUS / "addresses").write_bytes(ask(GET_ADDRESS, DUMP, bytes(8)))
    to = struct.pack("BBBBBBBBI", socket.AF_INET, 32, 0, 0, 0, 0, 0, 0, 0) + struct.pack(
        "HH4s", 8, 1, socket.inet_aton("10.8.0.1"))
    (CORPUS / "route").write_bytes(ask(GET_ROUTE, 0, to))
    four = "01004D0A:1F90 02004D0A:C350 01"
    six = " ".join(f"0000000000000000FFFF0000{half}" for half in four.split()[:2]) + " 01"
    (CORPUS / "tcp").write_text(TITLE + "   0: 00000000:1F90 00000000:0000 0A" + REST +
                                f"   1: {four}{REST}")
    (CORPUS / "tcp6").write_text(TITLE + f"   0: {six}{REST}")
    (CORPUS / "network").write_text("10.77.0.0/24")
    (CORPUS / "network6").write_text("fd00:7::/64")
    (CORPUS / "rule").write_text("tunnel:wg0")


if __name__ == "__main__":
    main()
