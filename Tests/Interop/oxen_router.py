"""A server of oxenmq's framing on pyzmq's ROUTER, with CURVE unless the endpoint is a path: the peer of Tests/Session/SessionProtocolTests.

    oxen_router.py <file of commands, which has none> ENDPOINT [HEARTBEAT]      ENDPOINT: tcp or ipc:///path; HEARTBEAT: ms between PINGs

It says "ready ENDPOINT KEY", then "greeted N" for every HI, "bye" for every BYE, and does what requests ask for by their command:
echo, silent, refuse, forbid, bye, end, odd, parts, flood (body: count and size), big (body: size).
"""

import sys

import zmq
from zmq.utils import z85

context = zmq.Context()
context.set(zmq.MAX_SOCKETS, 20_000)
router = context.socket(zmq.ROUTER)
router.router_mandatory, router.sndhwm, router.rcvhwm, router.linger = 1, 0, 0, 0
if len(sys.argv) > 3:
    router.heartbeat_ivl, router.heartbeat_timeout = int(sys.argv[3]), 60_000
public, secret = zmq.curve_keypair()
if sys.argv[2] == "tcp":
    router.curve_server, router.curve_secretkey = True, secret
    router.set(zmq.BACKLOG, 1000)
    endpoint = f"127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}"
else:
    router.bind(sys.argv[2])
    endpoint = sys.argv[2]
print("ready", endpoint, z85.decode(public).hex(), flush=True)
greeted = 0


def send(*parts):
    router.send_multipart(list(parts))


while True:
    peer, *parts = router.recv_multipart()
    if parts == [b"HI"]:
        greeted += 1
        send(peer, b"HELLO")
        print("greeted", greeted, flush=True)
        continue
    if parts == [b"BYE"]:
        print("bye", flush=True)
        continue
    command, tag, body = parts if len(parts) == 3 else (parts[0], b"", b"")
    if command == b"echo":
        send(peer, b"REPLY", tag, body, b"more")
    elif command == b"refuse":
        send(peer, b"UNKNOWNCOMMAND", b"REPLY", tag)
    elif command == b"forbid":
        send(peer, b"FORBIDDEN")
    elif command == b"bye":
        send(peer, b"BYE")
    elif command == b"end":
        sys.exit(0)
    elif command == b"odd":
        send(peer, b"")
        send(peer, b"REPLY")
        send(peer, b"HELLO")
        send(peer, b"\xff\xfe", b"x")
        send(peer, b"what.is_this", b"x")
        send(peer, b"REPLY", tag, b"done")
    elif command == b"parts":
        send(peer, *[b""] * 100_000)
    elif command == b"flood":
        count, size = map(int, body.split())
        for number in range(count):
            send(peer, b"notify.message", b"%d " % number + bytes(size))
        send(peer, b"REPLY", tag, b"done")
    elif command == b"big":
        send(peer, b"REPLY", tag, bytes(int(body)))
    print("did", command.decode(errors="replace"), flush=True)
