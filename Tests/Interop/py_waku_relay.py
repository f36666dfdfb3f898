"""A Waku node made of py-libp2p: gossips on a shard, serves metadata, a store of what it saw, lightpush and filter.

Prints its address, and a line for what happens: `received <hex>`, `pushed <hex>`, `queried <count>`, `metadata <cluster>`, `subscribed <peers>`,
`mesh <peers>`, `filter <topics>` for a light client's subscription. Does what is appended to a file, a line each: `dial <multiaddr>`, `publish <hex>`.

    py_waku_relay.py <file of commands> <pubsub topic>


Needs libp2p 0.8.1 from PyPI (Tests/Interop/requirements.txt)."""
import hashlib
import sys

import multiaddr
import trio
from libp2p import new_host
from libp2p.crypto.secp256k1 import create_new_key_pair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key_pair
from libp2p.custom_types import TProtocol
from libp2p.host.ping import ID as PING, handle_ping
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub import gossipsub, pubsub as pubsub_module
from libp2p.pubsub.pb import rpc_pb2
from libp2p.pubsub.pubsub import Pubsub
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE, Transport as NoiseTransport
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX, Yamux
from libp2p.tools.anyio_service import background_trio_service

RELAY = TProtocol("/vac/waku/relay/2.0.0")
METADATA = TProtocol("/vac/waku/metadata/1.0.0")
STORE = TProtocol("/vac/waku/store-query/3.0.0")
LIGHTPUSH = TProtocol("/vac/waku/lightpush/3.0.0")
FILTER_SUBSCRIBE = TProtocol("/vac/waku/filter-subscribe/2.0.0-beta1")
FILTER_PUSH = TProtocol("/vac/waku/filter-push/2.0.0-beta1")
COMMANDS, TOPIC = sys.argv[1:3]
CLUSTER, SHARD = (int(part) for part in TOPIC.split("/")[-2:])
PAGE_SIZE = 100


def say(*words):
    print(*words, flush=True)


# Protobuf, as much of it as is needed: {number: [values]}, varints as int, the rest as bytes.


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def fields(data):
    found, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            assert key & 7 == 2
            size, at = read_varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        found.setdefault(key >> 3, []).append(value)
    return found


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def zigzag(number):
    return number >> 1 ^ -(number & 1)


class Message:
    def __init__(self, data):
        self.data, parts = data, fields(data)
        self.topic = parts[2][0].decode()
        self.time = zigzag(parts.get(10, [0])[0])
        hashed = TOPIC.encode() + parts[1][0] + parts[2][0] + parts.get(11, [b""])[0] + self.time.to_bytes(8, "big", signed=True)
        self.hash = hashlib.sha256(hashed).digest()


class Node:
    def __init__(self, host, pubsub):
        self.host, self.pubsub, self.kept = host, pubsub, []
        # The content topics of each light client.
        self.subscriptions = {}
        self.pushing, self.pushed = trio.open_memory_channel(1000)
        handlers = {METADATA: self.metadata, STORE: self.store, LIGHTPUSH: self.lightpush, FILTER_SUBSCRIBE: self.filter}
        for name, handler in handlers.items():
            host.set_stream_handler(name, self.answering(handler))

    def answering(self, handler):
        async def serve(stream):
            data = b""
            while True:
                data += await stream.read(65536)
                size, at = read_varint(data + b"\0", 0)
                if len(data) >= at + size:
                    break
            answer = await handler(fields(data[at : at + size]), stream.muxed_conn.peer_id)
            await stream.write(varint(len(answer)) + answer)
            await stream.close()

        return serve

    async def metadata(self, request, client):
        say("metadata", request[1][0])
        return field(1, CLUSTER) + field(2, SHARD) + field(3, varint(SHARD))

    async def store(self, request, client):
        say("queried", len(self.kept))
        hashes, topics = request.get(20, []), [topic.decode() for topic in request.get(11, [])]
        start = zigzag(request[12][0]) if 12 in request else 0
        found = [m for m in self.kept if (m.hash in hashes if hashes else m.topic in topics and m.time >= start)]
        first = int.from_bytes(request[51][0], "big") if 51 in request else 0
        size = min(request.get(53, [PAGE_SIZE])[0], PAGE_SIZE)
        answer = field(1, request[1][0]) + field(10, 200) + field(11, "OK")
        for message in found[first : first + size]:
            body = field(2, message.data) + field(3, TOPIC) if request.get(2, [0])[0] else b""
            answer += field(20, field(1, message.hash) + body)
        return answer + (field(51, (first + size).to_bytes(32, "big")) if first + size < len(found) else b"")

    async def lightpush(self, request, client):
        say("pushed", request[21][0].hex())
        await self.publish(request[21][0])
        return field(1, request[1][0]) + field(10, 200) + field(12, len(self.pubsub.peer_topics.get(TOPIC, ())))

    async def filter(self, request, client):
        kind, topics = request.get(2, [0])[0], {topic.decode() for topic in request.get(11, [])}
        known, status = self.subscriptions.get(client, set()), 200
        if kind == 1:
            known = known | topics
        elif not known:
            status = 404
        elif kind == 2:
            known = known - topics
        elif kind == 3:
            known = set()
        self.subscriptions[client] = known
        say("filter", len(known))
        return field(1, request.get(1, [b""])[0]) + field(10, status) + field(11, "OK" if status == 200 else "no subscription")

    async def push(self, client, message):
        try:
            with trio.fail_after(5):
                stream = await self.host.new_stream(client, [FILTER_PUSH])
                push = field(1, message.data) + field(2, TOPIC)
                await stream.write(varint(len(push)) + push)
                await stream.close()
        except Exception as error:
            # Its client is gone.
            self.subscriptions.pop(client, None)
            say("unpushed", type(error).__name__)

    async def push_all(self, messages):
        async with trio.open_nursery() as nursery:
            async for message in messages:
                for client, topics in self.subscriptions.items():
                    if message.topic in topics:
                        nursery.start_soon(self.push, client, message)

    async def publish(self, data):
        # Without sender, number and signature.
        await self.pubsub.push_msg(self.pubsub.my_id, rpc_pb2.Message(data=data, topicIDs=[TOPIC]))

    async def listen(self, subscription):
        while True:
            data = (await subscription.get()).data
            try:
                message = Message(data)
                self.kept.append(message)
                await self.pushing.send(message)
            except (KeyError, AssertionError, IndexError):
                say("unreadable", data.hex())
            say("received", data.hex())

    async def tell_peers(self):
        last = None
        while True:
            counts = len(self.pubsub.peer_topics.get(TOPIC, ())), len(self.pubsub.router.mesh.get(TOPIC, ()))
            if counts != last:
                say("subscribed", counts[0])
                say("mesh", counts[1])
            last = counts
            await trio.sleep(0.05)

    async def obey(self):
        with open(COMMANDS) as commands:
            while True:
                line = commands.readline()
                if not line.endswith("\n"):
                    commands.seek(commands.tell() - len(line))
                    await trio.sleep(0.02)
                    continue
                command, word = line.split()
                if command == "dial":
                    await self.host.connect(info_from_p2p_addr(multiaddr.Multiaddr(word)))
                    say("dialled", word)
                elif command == "publish":
                    await self.publish(bytes.fromhex(word))


async def main():
    gossipsub.PROTOCOL_ID_V11 = RELAY
    pubsub_module.SUBSCRIPTION_CHANNEL_SIZE = 10_000
    key = create_new_key_pair()
    noise = NoiseTransport(libp2p_keypair=key, noise_privkey=create_noise_key_pair().private_key)
    host = new_host(key_pair=key, sec_opt={NOISE: noise}, muxer_opt={TProtocol(YAMUX): Yamux})
    host.set_stream_handler(PING, handle_ping)
    router = gossipsub.GossipSub([RELAY], 6, 4, 8, heartbeat_interval=1, spam_protection_enabled=False)
    # By author and number, which no message here has.
    router._check_equivocation = lambda message: True
    pubsub = Pubsub(host, router, strict_signing=False, msg_id_constructor=lambda message: hashlib.sha256(message.data).digest())
    node = Node(host, pubsub)
    async with host.run(listen_addrs=[multiaddr.Multiaddr("/ip4/127.0.0.1/tcp/0")]):
        async with background_trio_service(pubsub), background_trio_service(router), trio.open_nursery() as nursery:
            await pubsub.wait_until_ready()
            subscription = await pubsub.subscribe(TOPIC)
            say("address", host.get_addrs()[0])
            nursery.start_soon(node.listen, subscription)
            nursery.start_soon(node.tell_peers)
            nursery.start_soon(node.push_all, node.pushed)
            await node.obey()


trio.run(main)
