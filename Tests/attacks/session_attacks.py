#!/usr/bin/env python3
"""Attacks on Session's push server, against a real waku-push daemon, on loopback, each bounded in time; honest clients ask meanwhile.

    session_attacks.py --binary .build/debug/waku-push [--kit ../shared/conformance-session] [--only NAME,...] [--seconds 15]

Needs the Session conformance kit for clients, storage servers and gorush, and the kit's requirements. Prints a line for each attack: what was sent,
how the honest clients fared, and the daemon's memory before and at most during the attack. The exit status is 1 if the bar was missed.

    arrays    200 connections send arrays of 342 wrongly signed unsubscriptions; a subscription is asked for each second
    places    as many send arrays of valid subscriptions from another network: renewals of an account's 100 devices, and further devices of it
    devices   the signature of an account, and a member's delegated key, are used for 100 devices each; then the owner subscribes
    messages  a storage server reports messages for an account with 99 devices; messages of others are timed
"""

import argparse
import json
import math
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kit", default=Path(__file__).resolve().parents[2].parent / "shared" / "conformance-session", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--rate", type=float, default=275, help="messages a second of the storage server")
    parser.add_argument("--bandwidth", type=float, default=math.inf, metavar="MB", help="of arrays, a second; as much as goes by default")
    return parser.parse_args()


chosen = options()
if not (chosen.kit / "stage.py").exists():
    sys.exit(f"the Session conformance kit is not at {chosen.kit}: give --kit")
# The gorush stand-in is the one of the other kit.
sys.path[:0] = [str(chosen.kit), str(chosen.kit.parent / "conformance")]

from accounts import Account, Device, group, subscription, unsubscription  # noqa: E402
from stage import ADDED, UPDATED, Stage  # noqa: E402


class Memory:
    """The daemon's resident memory in MB: before an attack, and its greatest value during it."""

    def __init__(self, pid):
        self.pid, self.running = pid, True
        self.before = self.most = self.now()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def now(self):
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def watch(self):
        while self.running:
            self.most = max(self.most, self.now())
            time.sleep(0.05)

    def end(self):
        self.running = False
        self.thread.join()
        return f"memory {self.before:.0f} to {self.most:.0f} MB"


def send(connection, request):
    """Sends a request at this connection's part of the bandwidth."""
    if chosen.bandwidth == math.inf:
        return connection.sendall(request)
    for start in range(0, len(request), 4096):
        piece = request[start:start + 4096]
        connection.sendall(piece)
        time.sleep(len(piece) * chosen.connections / (chosen.bandwidth * 1e6))
    return None


def flood(address, body, until, counts, at, path="/unsubscribe", source=None):
    """Sends the same request over one connection, the next as soon as it is answered. The source is the client's address."""
    host, port = address.split(":")
    request = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    while time.monotonic() < until:
        try:
            with socket.create_connection((host, int(port)), 5, source and (source, 0)) as connection:
                while time.monotonic() < until:
                    send(connection, request)
                    head = b""
                    while b"\r\n\r\n" not in head:
                        piece = connection.recv(65536)
                        if not piece:
                            raise OSError("closed")
                        head += piece
                    head, rest = head.split(b"\r\n\r\n", 1)
                    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                    while len(rest) < length:
                        piece = connection.recv(65536)
                        if not piece:
                            raise OSError("closed")
                        rest += piece
                    counts[at] += 1
        except OSError:
            time.sleep(0.1)


def worst(times):
    return f"worst {max(times):.2f} s" if times else "none answered"


def arrays(stage):
    stage.ensure()
    stage.alive()
    account = Account()
    one = unsubscription(account, Device(), signature="11" * 64)
    return asked_beside(stage, array_of(one))


def array_of(one):
    """The largest body with copies of an entry, each with a token of its own, as short as it may be."""
    entries, body = [one | {"service_info": {"token": str(number)}} for number in range(342)], b""
    while not body or len(body) > 100_000:
        entries = entries[:len(entries) * 99_000 // len(body)] if body else entries
        body = json.dumps(entries, separators=(",", ":")).encode()
    return body


def asked_beside(stage, body, **how):
    """Honest clients subscribe while all connections send this body."""
    memory, until, counts = Memory(stage.daemon.pid), time.monotonic() + chosen.seconds, [0] * chosen.connections
    threads = [threading.Thread(target=flood, args=(stage.daemon.session_http, body, until, counts, at), kwargs=how, daemon=True)
               for at in range(chosen.connections)]
    for thread in threads:
        thread.start()
    asked, times = 0, []
    while time.monotonic() < until - 1:
        asked, start = asked + 1, time.monotonic()
        try:
            if stage.ask("/subscribe", subscription(Account(), Device())) == ADDED:
                times.append(time.monotonic() - start)
        except Exception:  # noqa: BLE001 – an honest request that fails counts as not answered
            pass
        time.sleep(max(0, 1 - (time.monotonic() - start)))
    for thread in threads:
        thread.join()
    rate = sum(counts) / chosen.seconds
    good = sum(time <= 5 for time in times)
    return good >= 0.8 * asked, (f"{rate:.0f} arrays ({rate * len(body) / 1e6:.1f} MB) a second; {good} of {asked} honest subscriptions "
                                 f"within 5 s, {worst(times)}; {memory.end()}")


def places(stage):
    stage.ensure()
    stage.alive()
    family = group()
    # The signature covers no token: one is enough for all.
    body = array_of(subscription(family, Device()))
    if sum(answer == ADDED for answer in stage.ask("/subscribe", body)) != 100:
        return False, "the account did not get 100 devices"
    return asked_beside(stage, body, path="/subscribe", source="127.9.9.9")


def devices(stage):
    stage.ensure()
    owner, device = Account(), Device()
    first = subscription(owner, device)
    added = [stage.ask("/subscribe", first)]
    # A storage server saw this signature. It covers neither token nor key.
    for start in range(0, 150, 50):
        stage.ask("/subscribe", [first | Device().fields() for _ in range(50)])
    time.sleep(4)
    added += [stage.ask("/subscribe", subscription(owner, Device())), stage.ask("/subscribe", subscription(owner, device))]
    family = group()
    member = family.subaccount()
    for start in range(0, 150, 50):
        stage.ask("/subscribe", [subscription(family, Device(), by=member) for _ in range(50)])
    added += [stage.ask("/subscribe", subscription(family, Device())),
              stage.ask("/subscribe", subscription(family, Device(), by=family.subaccount()))]
    expected = [ADDED, ADDED, UPDATED, ADDED, ADDED]
    good = sum(came == wanted for came, wanted in zip(added, expected))
    return good == len(expected), f"{good} of {len(expected)} subscriptions of the owner and of another member accepted"


def messages(stage):
    stage.ensure()
    victim, own = Account(), Account()
    honest = stage.subscribed(victim, Device())
    for start in range(0, 99, 33):
        stage.ask("/subscribe", [subscription(own, Device()) for _ in range(33)])
    stage.monitored(own)
    stage.notified(victim, honest)
    memory, until, sent = Memory(stage.daemon.pid), time.monotonic() + chosen.seconds, [0]

    def report():
        node = stage.swarm(own)[0]
        while time.monotonic() < until:
            start = time.monotonic()
            for _ in range(int(chosen.rate / 10)):
                stage.tell(own, node=node)
                sent[0] += 1
            time.sleep(max(0, 0.1 - (time.monotonic() - start)))

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    asked, times = 0, []
    while time.monotonic() < until - 1:
        asked, start, count = asked + 1, time.monotonic(), len(stage.gorush.sent(honest))
        stage.tell(victim)
        if stage.wait(lambda: len(stage.gorush.sent(honest)) > count, 10):
            times.append(time.monotonic() - start)
        time.sleep(max(0, 1 - (time.monotonic() - start)))
    thread.join()
    good = sum(time <= 5 for time in times)
    summary = f"{sent[0] / chosen.seconds:.0f} messages a second for 99 devices; {good} of {asked} honest messages within 5 s, {worst(times)}"
    summary += "; " + memory.end()
    return good >= 0.8 * asked and memory.most <= 1.5 * memory.before + 64, summary


def main():
    attacks = {"arrays": arrays, "places": places, "devices": devices, "messages": messages}
    names = chosen.only.split(",") if chosen.only else list(attacks)
    folder, missed = Path(tempfile.mkdtemp()), False
    stage = Stage(chosen.binary, folder / "daemon")
    try:
        for name in names:
            held, summary = attacks[name](stage)
            missed = missed or not held
            print(f"{'held  ' if held else 'MISSED'} {name}: {summary}", flush=True)
    finally:
        stage.halt(kill=True)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(missed)


main()
