#!/usr/bin/env python3
"""Floods by throw-away keys against a real waku-push daemon, on loopback, each bounded in time; honest clients ask meanwhile.

    status_attacks.py --binary .build/debug/waku-push [--kit ../shared/conformance] [--only NAME,...] [--seconds 30]

Needs the conformance kit for the wire format, the relay and the gorush stand-in, and the kit's requirements. Prints a line for each attack: what was
sent, the share of honest known clients and honest strangers that were answered within 5 s with their worst times, and the daemon's memory and CPU
time. The exit status is 1 if the bar was missed: all known clients, and 80 % of the strangers; memory within 1.5 times and 64 MiB.

The rates are those of the threat model's table, on a machine with two idle cores. On a busy one lower them with --scale.
"""

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
WAIT = 5.0


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kit", default=Path(__file__).resolve().parents[2].parent / "shared" / "conformance", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all rates")
    return parser.parse_args()


chosen = options()
if not (chosen.kit / "wire.py").exists():
    sys.exit(f"the conformance kit is not at {chosen.kit}: give --kit")
sys.path.insert(0, str(chosen.kit))

import wire  # noqa: E402
from client import Client, request, to_server  # noqa: E402
from gorush import Gorush  # noqa: E402
from harness import Harness  # noqa: E402
from node import Node  # noqa: E402
from relay import Message, Relay  # noqa: E402


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def segment(whole_hash, index, count, payload):
    out = b"\x0a" + varint(len(whole_hash)) + whole_hash
    out += (b"\x10" + varint(index) if index else b"") + b"\x18" + varint(count)
    return out + b"\x22" + varint(len(payload)) + payload


class Attack:
    """A daemon with its neighbours, honest clients, and one attacker."""

    def __init__(self, name, **options):
        """`options` are those of serve, by their names in the environment."""
        self.name = name
        self.directory = Path(tempfile.mkdtemp(prefix="waku-push-attack-"))
        self.relay, self.gorush = Relay(capacity=100_000), Gorush()
        self.relay.archiving = False
        identity = wire.Key.generate()
        self.server = identity.public
        self.node = Node(chosen.binary, self.directory, identity, self.relay, self.gorush)
        self.node.environment |= {f"WAKU_PUSH_{option}": str(value) for option, value in options.items()}
        self.node.start()
        self.harness = Harness(self.node, self.relay, self.gorush, identity, WAIT)
        self.sent = self.sent_bytes = 0

    def end(self):
        self.node.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    # the attacker

    def put(self, *messages):
        self.sent += len(messages)
        self.sent_bytes += sum(len(message.payload) for message in messages)
        self.relay.put(*messages)

    def flood(self, rate, make, stop, topic=None):
        """Messages of `make(number)` at a rate, until `stop` is set; on another topic, which the daemon does not listen on, if there is one."""
        began, number = time.monotonic(), 0
        while not stop.is_set():
            due = int((time.monotonic() - began) * rate * chosen.scale)
            if number >= due:
                stop.wait(0.02)
                continue
            messages = make(number)
            for message in messages:
                message.content_topic = topic or message.content_topic
            self.put(*messages)
            number += 1

    # honest clients

    def timed(self, sent):
        """Seconds until the answer; None if there was none in time."""
        began = time.monotonic()
        self.harness.send(sent)
        found = self.harness.wait(lambda: next((a for a in self.harness.inbox if a.reference == sent.reference), None), WAIT)
        self.harness.inbox.clear()  # answers to the attacker
        if found is None:
            return None, None
        return time.monotonic() - began, found.fields

    def known_client(self):
        """A client for which gorush has accepted a notification."""
        client = Client(self.server)
        assert self.timed(client.register())[0] is not None, "the daemon does not answer before the attack"
        assert self.timed(client.query())[0] is not None
        assert self.timed(request(self.server, [client.entry()]))[0] is not None
        return client

    def ask_known(self, client, turn):
        if turn % 2:
            return self.timed(client.query())[0]
        took, fields = self.timed(request(self.server, [client.entry()]))
        return took if took is not None and fields["reports"][0]["success"] else None

    def ask_stranger(self):
        """A new device registers, and is asked about."""
        client = Client(self.server)
        took, fields = self.timed(client.register())
        if took is None or not fields["success"]:
            return None
        asked = self.timed(client.query())[0]
        return None if asked is None else max(took, asked)

    def timed_posts(self, tokens, wait):
        """Seconds until each of these device tokens was posted to gorush and accepted; None for those that were not in time."""
        began, left, read, took = time.monotonic(), set(tokens), len(self.gorush.posts), {}
        while left and time.monotonic() - began < wait:
            with self.gorush.changed:
                fresh, read = self.gorush.posts[read:], len(self.gorush.posts)
            for post in fresh:
                for notification in post.notifications if post.accepted else []:
                    token = notification["tokens"][0]
                    if token in left:
                        left.remove(token)
                        took[token] = post.at - began
            time.sleep(0.01)
        return [took.get(token) for token in tokens]

    # measures

    def usage(self):
        """Resident bytes and CPU seconds of the daemon."""
        pid = self.node._process.pid
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, prepare, rate, make, rounds_without=6):
        known = [self.known_client() for _ in range(3)]
        prepare(self)
        base = [self.ask_known(known[turn % 3], turn) for turn in range(rounds_without)]
        # The script's own load on the machine, without work for the daemon.
        stop = threading.Event()
        thread = threading.Thread(target=self.flood, args=(rate, make, stop, "/elsewhere/1/x/proto"), daemon=True)
        thread.start()
        loaded, began = [], time.monotonic()
        while time.monotonic() - began < min(5, chosen.seconds):
            loaded.append(self.ask_known(known[len(loaded) % 3], len(loaded)))
        stop.set()
        thread.join()
        memory, cpu = self.usage()
        self.sent = self.sent_bytes = 0
        stop = threading.Event()
        thread = threading.Thread(target=self.flood, args=(rate, make, stop), daemon=True)
        began = time.monotonic()
        thread.start()
        results = {"known": [], "strangers": []}
        turn = 0
        try:
            while time.monotonic() - began < chosen.seconds:
                results["known"].append(self.ask_known(known[turn % 3], turn))
                results["strangers"].append(self.ask_stranger())
                turn += 1
        finally:
            stop.set()
            thread.join()
        seconds = time.monotonic() - began
        memory_after, cpu_after = self.usage()

        def share(list_):
            return sum(took is not None for took in list_) / max(1, len(list_))

        def p99(list_):
            took = sorted(took for took in list_ if took is not None)
            return took[len(took) * 99 // 100] if took else float("nan")

        def worst(list_):
            return max((took for took in list_ if took is not None), default=float("nan"))

        known_share, stranger_share = share(results["known"]), share(results["strangers"])
        passed = known_share == 1 and stranger_share >= 0.8 and memory_after <= memory * 1.5 + (64 << 20)
        published = sum(len(p.message.payload) for p in self.relay.published)
        print(f"{'ok' if passed else 'MISSED'} {self.name}: {self.sent} messages, {self.sent_bytes / seconds / 1000:.0f} KB/s for {seconds:.0f} s; "
              f"known {known_share:.0%}, p99 {p99(results['known']):.2f} s, worst {worst(results['known']):.2f} s "
              f"(without: worst {worst(base):.2f} s; with the same messages on another topic: p99 {p99(loaded):.2f} s); "
              f"strangers {stranger_share:.0%} of {len(results['strangers'])}, worst {worst(results['strangers']):.2f} s; "
              f"memory {memory >> 20} to {memory_after >> 20} MiB; CPU {cpu_after - cpu:.1f} s; answers {published / 1e6:.1f} MB", flush=True)
        return passed


def nothing(attack):
    pass


def segments(attack):
    """Memory for incomplete messages, filled with fragments, then tiny wholes at a steady rate."""
    keys = [wire.Key.generate() for _ in range(520)]

    def fragment(number):
        data = segment(wire.keccak256(number.to_bytes(8, "big")), 0, 2, b"x" * 100)
        return to_server(attack.server, data, keys[number % len(keys)], wire.personal(attack.server))

    def prepare(attack):
        for start in range(0, 2_080, 130):
            attack.put(*[fragment(number) for number in range(start, start + 130)])
            time.sleep(0.2)

    return attack.run(prepare, 20, lambda number: [fragment(10_000 + number)])


def derivations(attack):
    """New registrants, each with junk on its query topic."""
    def make(number):
        client = Client(attack.server)
        junk = Message(os.urandom(300), wire.content_topic(wire.query(client.key.public)))
        return [client.register().message, junk]

    return attack.run(nothing, 40, make)


def amplification(attack):
    """Queries about own registrants with lists of 790 KB."""
    own = [Client(attack.server) for _ in range(2)]

    def prepare(attack):
        for client in own:
            entries = [os.urandom(250) for _ in range(3_100)]
            assert attack.timed(client.register(allowed_key_list=entries))[0] is not None
            client.query()

    return attack.run(prepare, 10, lambda number: [own[number % 2].query().message])


SHORT_ENTRIES = {name: [b"x"] * 30_000 for name in (
    "allowed_key_list", "blocked_chat_list", "allowed_mentions_chat_list", "muted_chat_list")}


def long_requests(attack):
    """Requests for eight own devices with lists of 120,000 short entries, and with wrong access tokens: 1.5 KB each."""
    own = [Client(attack.server) for _ in range(8)]
    wrong = str(uuid.uuid4())

    def prepare(attack):
        for client in own:
            assert attack.timed(client.register(**SHORT_ENTRIES))[0] is not None

    return attack.run(prepare, 20, lambda number: [request(attack.server, [c.entry(access_token=wrong) for c in own]).message])


def outdated(attack):
    """Registrations with a new version and a wrong grant, for own devices with lists of 120,000 short entries."""
    own = [Client(attack.server) for _ in range(8)]

    def prepare(attack):
        for client in own:
            assert attack.timed(client.register(**SHORT_ENTRIES))[0] is not None
            client.fields = {name: value for name, value in client.fields.items() if name not in SHORT_ENTRIES}

    # Within `registrations-by-sender`.
    return attack.run(prepare, 16, lambda number: [own[number % 8].register(grant=b"x" * 65).message])


def wide_queries(attack):
    """Queries about 200 own registrants with 16 KB each."""
    own = [Client(attack.server) for _ in range(200)]

    def prepare(attack):
        for start in range(0, len(own), 20):
            attack.put(*[client.register(blocked_chat_list=[b"x"] * 5_400).message for client in own[start:start + 20]])
            time.sleep(1)
        own[0].query()

    return attack.run(prepare, 10, lambda number: [own[0].query(keys=[client.hash for client in own]).message])


def registrations(attack):
    """New registrations by new keys."""
    return attack.run(nothing, 250, lambda number: [Client(attack.server).register().message])


def fan_out(attack):
    """Requests that notify a thousand own devices."""
    own = []

    def prepare(attack):
        for _ in range(10):
            key = wire.Key.generate()
            devices = [Client(attack.server, key=key) for _ in range(100)]
            own.extend(devices)
            attack.put(*[device.register().message for device in devices])
            time.sleep(1)

    def make(number):
        return [request(attack.server, [device.entry() for device in own]).message]

    return attack.run(prepare, 10, make)


def outbox(attack):
    """A thousand own devices fill the outbox while gorush is away: notifications of others wait there, and are posted soon after its return. Devices
    that gorush has delivered to have more waiting than any of the attacker's, and lose none."""
    own = []
    for _ in range(10):
        key = wire.Key.generate()
        devices = [Client(attack.server, key=key) for _ in range(100)]
        own.extend(devices)
        attack.relay.put(*[device.register().message for device in devices])
        time.sleep(1)
    honest = [Client(attack.server) for _ in range(20)]
    for client in honest:
        assert attack.timed(client.register())[0] is not None
    known = [attack.known_client() for _ in range(10)]
    attack.gorush.mode = "error"
    attack.sent = attack.sent_bytes = 0
    began = time.monotonic()
    memory, cpu = attack.usage()
    flood = lambda: attack.put(*[request(attack.server, [device.entry() for device in own]).message for _ in range(4)])  # noqa: E731
    flood()
    for client in honest + KNOWN_WAITING * known:
        attack.timed(request(attack.server, [client.entry()]))
    for _ in range(max(1, int(chosen.seconds / 10))):
        flood()
        time.sleep(2)
    seconds = time.monotonic() - began
    attack.gorush.mode = "ok"
    took = attack.timed_posts([client.fields["device_token"] for client in honest], 30)
    posted = [seconds for seconds in took if seconds is not None]
    known_tokens = {client.fields["device_token"] for client in known}

    def posted_to_known():
        posts = [post for post in list(attack.gorush.posts) if post.accepted]
        # One each made them known.
        return sum(notification["tokens"][0] in known_tokens for post in posts for notification in post.notifications) - len(known)

    expected, deadline = KNOWN_WAITING * len(known), time.monotonic() + 30
    while posted_to_known() < expected and time.monotonic() < deadline:
        time.sleep(0.1)
    kept = posted_to_known()
    memory_after, cpu_after = attack.usage()
    passed = len(posted) == len(honest) and max(posted) <= 15 and kept == expected and memory_after <= memory * 1.5 + (64 << 20)
    print(f"{'ok' if passed else 'MISSED'} {attack.name}: {attack.sent} messages for {len(own)} devices, {attack.sent_bytes / seconds / 1000:.0f} KB/s for "
          f"{seconds:.0f} s, {OUTBOX_LIMIT} places; {len(posted)} of {len(honest)} others posted, the last {max(posted, default=float('nan')):.2f} s after "
          f"gorush's return; {kept} of {expected} of known devices posted; memory {memory >> 20} to {memory_after >> 20} MiB; CPU {cpu_after - cpu:.1f} s", flush=True)
    return passed


def one_device(attack):
    """60 requests a second for one device: each honest message for it is followed by a post within 2 s."""
    victim, other = Client(attack.server), Client(attack.server)
    for client in (victim, other):
        assert attack.timed(client.register())[0] is not None
    token = victim.fields["device_token"]
    memory, cpu = attack.usage()
    attack.sent = attack.sent_bytes = 0
    stop = threading.Event()
    make = lambda number: [request(attack.server, [victim.entry()]).message]  # noqa: E731
    thread = threading.Thread(target=attack.flood, args=(60, make, stop), daemon=True)
    began = time.monotonic()
    thread.start()
    followed, others, reported = [], [], 0
    try:
        while time.monotonic() - began < chosen.seconds:
            message = request(attack.server, [victim.entry()])
            attack.harness.send(message)
            followed += attack.timed_posts([token], WAIT)
            answer = attack.harness.wait(lambda: next((a for a in attack.harness.inbox if a.reference == message.reference), None), 0.5)
            reported += bool(answer and answer.fields["reports"][0]["success"])
            attack.harness.inbox.clear()
            others.append(attack.timed(request(attack.server, [other.entry()]))[0])
    finally:
        stop.set()
        thread.join()
    seconds = time.monotonic() - began
    memory_after, cpu_after = attack.usage()
    late = sum(took is None or took > 2 for took in followed)
    passed = late == 0 and None not in others and memory_after <= memory * 1.5 + (64 << 20)
    print(f"{'ok' if passed else 'MISSED'} {attack.name}: {attack.sent} messages, {attack.sent_bytes / seconds / 1000:.0f} KB/s for {seconds:.0f} s; "
          f"{len(followed)} honest messages, {late} not followed by a post within 2 s, worst {max((took for took in followed if took), default=float('nan')):.2f} s; "
          f"{reported} reported as accepted; another device {sum(took is not None for took in others)} of {len(others)}, worst "
          f"{max((took for took in others if took), default=float('nan')):.2f} s; memory {memory >> 20} to {memory_after >> 20} MiB; "
          f"CPU {cpu_after - cpu:.1f} s", flush=True)
    return passed


def repetitions(attack):
    """What a client signed, sent again by others: a registration with new timestamps, and a chat message in envelopes of a registration. The client
    renews its registration meanwhile."""
    victim = Client(attack.server)
    first = victim.register()
    assert attack.timed(first)[0] is not None
    chat = b"a chat message"
    forged = wire.encode("ApplicationMetadataMessage", {"signature": victim.key.sign(wire.keccak256(chat)), "payload": chat, "type": wire.REGISTRATION})

    def make(number):
        return [replace(first.message, timestamp=time.time_ns()),
                to_server(attack.server, forged, wire.Key.generate(), wire.personal(attack.server))]

    memory, cpu = attack.usage()
    attack.sent = attack.sent_bytes = 0
    stop = threading.Event()
    thread = threading.Thread(target=attack.flood, args=(60, make, stop), daemon=True)
    began = time.monotonic()
    thread.start()
    took = []
    try:
        while time.monotonic() - began < chosen.seconds:
            took.append(attack.timed(victim.register())[0])
            time.sleep(1)
    finally:
        stop.set()
        thread.join()
    seconds = time.monotonic() - began
    memory_after, cpu_after = attack.usage()
    passed = None not in took and memory_after <= memory * 1.5 + (64 << 20)
    print(f"{'ok' if passed else 'MISSED'} {attack.name}: {attack.sent} messages, {attack.sent_bytes / seconds / 1000:.0f} KB/s for {seconds:.0f} s; "
          f"{sum(one is not None for one in took)} of {len(took)} renewals answered, worst {max((one for one in took if one), default=float('nan')):.2f} s; "
          f"memory {memory >> 20} to {memory_after >> 20} MiB; CPU {cpu_after - cpu:.1f} s", flush=True)
    return passed


# Fewer places than the default, so that a short attack fills them.
OUTBOX_LIMIT = 2_000
KNOWN_WAITING = 5
ATTACKS = {
    segments: {}, derivations: {}, amplification: {}, long_requests: {}, outdated: {}, wide_queries: {}, registrations: {}, fan_out: {},
    outbox: {"OUTBOX_LIMIT": OUTBOX_LIMIT}, one_device: {}, repetitions: {}}


def main():
    names = chosen.only.split(",") if chosen.only else [function.__name__ for function in ATTACKS]
    passed = True
    for function, options in ATTACKS.items():
        if function.__name__ not in names:
            continue
        attack = Attack(function.__name__, **options)
        try:
            passed = function(attack) and passed
        finally:
            attack.end()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
