"""Storage servers and an oxend of Session's network, on pyzmq's ROUTERs with CURVE: the peers of Tests/Session/SessionProtocolTests.

    session_network.py <file of commands> <swarm id, hex>...

Each swarm id makes a storage server. A line is printed for each: `server INDEX PORT KEY SWARM`, then `oxend PORT KEY`, then for what happens:

    greeted INDEX             a connection said HI
    bye INDEX                 a connection said BYE
    request INDEX COUNT       monitor.messages with so many entries
    entry INDEX ACCOUNT SIG_TS ERRCODE
    listed, blocks            oxend was asked for the list, or for blocks
    fault TEXT                what no real one would put up with
    told INDEX COUNT          a command has sent a message to so many connections
    attacked INDEX            a command's attack has been sent

Commands, a line each, are appended to the file:

    refuse INDEX ACCOUNT ERRCODE     what an account is answered with from now on; 0 for success
    silent INDEX 0|1                 whether requests stay without an answer
    error INDEX WORD                 an error of oxenmq for all requests; - for none
    message INDEX ACCOUNT HASH BYTES t z     notify.message where the account is monitored, with so many bytes of data
    tell INDEX HEX                   notify.message with these bytes, to all connections
    attack INDEX KIND                sends to all connections until the next command
    forge INDEX OTHER                answers, on its connections, the last request of another server with a refusal
    mark WORD                        says `marked WORD`: what was told before is done
    stop                             only ends an attack
    bye INDEX, down INDEX, up INDEX    INDEX may be "oxend" for the last two
    list INDEX...                    what oxend lists; `list broken`, `list empty`
    block                            oxend tells of a block
"""

import json
import os
import sys
import time

import nacl.bindings as sodium
import nacl.exceptions
import zmq
from zmq.utils import z85

COMMANDS = sys.argv[1]
context = zmq.Context()
context.set(zmq.MAX_SOCKETS, 20_000)
poller = zmq.Poller()


def say(*words):
    print(*words, flush=True)


# Bencode, strict, as much as is needed.


def decode(data):
    value, end = read(data, 0)
    if end != len(data):
        raise ValueError("bytes after the value")
    return value


def read(data, at):
    head = data[at:at + 1]
    if head == b"i":
        end = data.index(b"e", at)
        text = data[at + 1:end]
        if str(int(text)).encode() != text:
            raise ValueError("an integer that is not canonical")
        return int(text), end + 1
    if head == b"l":
        at, values = at + 1, []
        while data[at:at + 1] != b"e":
            value, at = read(data, at)
            values.append(value)
        return values, at + 1
    if head == b"d":
        at, values, last = at + 1, {}, None
        while data[at:at + 1] != b"e":
            key, at = read(data, at)
            if last is not None and key <= last:
                raise ValueError("keys are not sorted")
            last = key
            values[key], at = read(data, at)
        return values, at + 1
    colon = data.index(b":", at)
    length = int(data[at:colon])
    if colon + 1 + length > len(data):
        raise ValueError("truncated")
    return data[colon + 1:colon + 1 + length], colon + 1 + length


def encode(value):
    if isinstance(value, int):
        return b"i%de" % value
    if isinstance(value, bytes):
        return b"%d:" % len(value) + value
    if isinstance(value, list):
        return b"l" + b"".join(map(encode, value)) + b"e"
    return b"d" + b"".join(encode(key) + encode(value[key]) for key in sorted(value)) + b"e"


class Router:
    def __init__(self, curve=True):
        self.public, self.secret = zmq.curve_keypair()
        self.curve, self.port, self.socket, self.peers = curve, 0, None, []
        self.up()

    @property
    def key(self):
        return z85.decode(self.public).hex()

    def up(self):
        if self.socket:
            return
        self.socket = context.socket(zmq.ROUTER)
        self.socket.router_mandatory, self.socket.sndhwm, self.socket.rcvhwm, self.socket.linger = 1, 0, 0, 0
        if self.curve:
            self.socket.curve_server, self.socket.curve_secretkey = True, self.secret
        for _ in range(500):
            try:
                self.socket.bind(f"tcp://127.0.0.1:{self.port or '*'}")
                break
            except zmq.ZMQError:
                time.sleep(0.01)
        self.port = int(self.socket.last_endpoint.decode().rsplit(":", 1)[1])
        poller.register(self.socket, zmq.POLLIN)

    def down(self):
        if self.socket:
            poller.unregister(self.socket)
            self.socket.close(linger=0)
            self.socket = None
        self.ended(list(self.peers))

    def ended(self, peers):
        self.peers = [peer for peer in self.peers if peer not in peers]

    def send(self, peer, *parts):
        try:
            self.socket.send_multipart([peer, *parts], zmq.NOBLOCK)
            return True
        except (zmq.ZMQError, AttributeError):
            return False

    def drain(self):
        for _ in range(1000):
            if not self.socket:
                return
            try:
                peer, *parts = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if parts == [b"HI"]:
                self.peers.append(peer)
                self.send(peer, b"HELLO")
                self.greeted()
            elif parts == [b"BYE"]:
                self.ended([peer])
                self.left()
            else:
                self.request(peer, parts)

    def greeted(self):
        pass

    def left(self):
        pass


class Storage(Router):
    def __init__(self, index, swarm):
        self.index, self.swarm = index, swarm
        self.refusals, self.silent, self.error, self.monitors, self.tag = {}, False, None, {}, b""
        super().__init__()

    def greeted(self):
        say("greeted", self.index)

    def left(self):
        say("bye", self.index)

    def ended(self, peers):
        super().ended(peers)
        self.monitors = {account: kept for account, those in self.monitors.items() if (kept := those - set(peers))}

    def state(self):
        return {"pubkey_x25519": self.key, "public_ip": "127.0.0.1", "storage_lmq_port": self.port, "swarm_id": self.swarm}

    def request(self, peer, parts):
        if len(parts) != 3 or parts[0] != b"monitor.messages":
            return say("fault", f"{self.index}: {len(parts)} parts, {parts[0]!r}")
        self.tag = parts[1]
        if self.error:
            return self.send(peer, self.error, b"REPLY", parts[1])
        try:
            asked = decode(parts[2])
        except (ValueError, IndexError) as error:
            return say("fault", f"{self.index}: {error}")
        entries = asked if isinstance(asked, list) else [asked]
        reply = [self.entry(peer, entry) for entry in entries]
        # After its entries: whoever waits for the request finds all of them.
        say("request", self.index, len(entries))
        if not self.silent:
            self.send(peer, b"REPLY", parts[1], encode(reply if isinstance(asked, list) else reply[0]))

    def entry(self, peer, entry):
        account, code = judged(entry)
        if code:
            say("fault", f"{self.index}: errcode {code} for {entry}")
        code = code or self.refusals.get(account, 0)
        say("entry", self.index, account.hex(), entry.get(b"t", 0), code)
        if code:
            return {b"errcode": code, b"error": b"refused"}
        self.monitors.setdefault(account, set()).add(peer)
        return {b"success": 1}


def judged(entry):
    """The account of an entry, and the errcode of a real storage server."""
    if b"P" in entry:
        signer, account = entry[b"P"], b"\5" + sodium.crypto_sign_ed25519_pk_to_curve25519(entry[b"P"])
    else:
        account = entry.get(b"p", b"")
        signer = account[1:]
    if len(account) != 33 or (b"P" in entry) == (b"p" in entry) or entry.keys() - {b"P", b"p", b"S", b"T", b"d", b"n", b"s", b"t"}:
        return account, 2
    spaces = ",".join(map(str, entry[b"n"]))
    text = f"MONITOR{account.hex()}{entry[b't']}{entry[b'd']}{spaces}".encode()
    try:
        sodium.crypto_sign_open(entry[b"s"] + text, signer)
        return account, 0
    except nacl.exceptions.BadSignatureError:
        return account, 5


class Oxend(Router):
    def __init__(self):
        self.states, self.subscribers, self.height = [], [], 1000
        super().__init__()

    def request(self, peer, parts):
        command, tag, *body = parts
        if command == b"rpc.get_service_nodes":
            fields = ["pubkey_x25519", "public_ip", "storage_lmq_port", "swarm_id", "block_hash", "height"]
            if json.loads(body[0]) != {"active_only": True, "fields": dict.fromkeys(fields, True)}:
                say("fault", f"oxend: {body[0]!r}")
            answer = {"service_node_states": self.states, "height": self.height, "block_hash": f"{self.height:064x}"}
            self.send(peer, b"REPLY", tag, b"200", b"{" if self.states is None else json.dumps(answer).encode())
            say("listed")
        elif command == b"sub.block":
            self.subscribers.append(peer)
            self.send(peer, b"REPLY", tag, b"OK")
            say("blocks")
        else:
            say("fault", f"oxend: {command!r}")


servers = [Storage(index, int(swarm, 16)) for index, swarm in enumerate(sys.argv[2:])]
oxend = Oxend()
for server in servers:
    say("server", server.index, server.port, server.key, f"{server.swarm:016x}")
say("oxend", oxend.port, oxend.key)


def attack(server, kind):
    number = 0
    known = [account for account in server.monitors] or [bytes(33)]
    while os.path.getsize(COMMANDS) == position and server.peers:
        for peer in list(server.peers):
            number += 1
            now = int(time.time() * 1000)
            message = {b"@": known[0], b"h": b"h%063d" % number, b"n": 0, b"t": now, b"z": now + 60_000}
            if kind == "junk":
                server.send(peer, b"notify.message", b"x" * 100)
            elif kind == "foreign":
                server.send(peer, b"notify.message", encode(message | {b"@": b"\5" + os.urandom(32)}))
            elif kind == "valid":
                server.send(peer, b"notify.message", encode(message | {b"~": bytes(20_000)}))
            elif kind == "replies":
                server.send(peer, b"REPLY", os.urandom(8), b"d7:successi1ee")
            elif kind == "frames":
                server.send(peer, b"notify.message", bytes(900_000))
            elif kind == "huge":
                server.send(peer, b"notify.message", bytes(6_000_000))
            elif kind == "parts":
                # libzmq sends a message once it is complete: one of 300 MB.
                server.send(peer, *[bytes(1_000_000)] * 300)
            elif kind == "deep":
                server.send(peer, b"REPLY", server.tag, b"l" * 500_000)
            elif kind == "commands":
                server.send(peer, b"sub.nothing", *[b"x"] * 15)
        # What libzmq has not sent is kept here: not more than it can send.
        time.sleep(0.3 if kind == "parts" else 0.02 if kind in ("frames", "huge", "deep") else 0.0002)
        if number % 50 == 0 or kind in ("parts", "huge"):
            server.drain()
    say("attacked", server.index)


def perform(words):
    name, *rest = words
    if name == "stop":
        return
    if name == "mark":
        return say("marked", *rest)
    if name == "list":
        oxend.states = None if rest == ["broken"] else [] if rest == ["empty"] else [servers[int(index)].state() for index in rest]
        return
    if name == "block":
        oxend.height += 1
        for peer in oxend.subscribers:
            oxend.send(peer, b"notify.block", b"%d" % oxend.height, bytes(32))
        return
    server, rest = oxend if rest[0] == "oxend" else servers[int(rest[0])], rest[1:]
    if name == "refuse":
        server.refusals[bytes.fromhex(rest[0])] = int(rest[1])
    elif name == "silent":
        server.silent = rest[0] == "1"
    elif name == "error":
        server.error = None if rest[0] == "-" else rest[0].encode()
    elif name == "message":
        account, digest, size, stored, expires = bytes.fromhex(rest[0]), rest[1].encode(), *map(int, rest[2:])
        message = {b"@": account, b"h": digest, b"n": 0, b"t": stored, b"z": expires, b"~": bytes(size)}
        peers = server.monitors.get(account, set())
        say("told", server.index, sum(server.send(peer, b"notify.message", encode(message)) for peer in peers))
    elif name == "tell":
        say("told", server.index, sum(server.send(peer, b"notify.message", bytes.fromhex(rest[0])) for peer in list(server.peers)))
    elif name == "forge":
        other = servers[int(rest[0])]
        for peer in server.peers:
            server.send(peer, b"REPLY", other.tag, encode({b"errcode": 5, b"error": b"forged"}))
    elif name == "attack":
        attack(server, rest[0])
    elif name == "bye":
        peers = list(server.peers)
        for peer in peers:
            server.send(peer, b"BYE")
        server.ended(peers)
    elif name == "down":
        server.down()
    elif name == "up":
        server.up()


position = 0
while True:
    for socket, _ in poller.poll(10):
        for router in [*servers, oxend]:
            if router.socket is socket:
                router.drain()
    with open(COMMANDS) as file:
        file.seek(position)
        while (line := file.readline()).endswith("\n"):
            position += len(line)
            perform(line.split())
