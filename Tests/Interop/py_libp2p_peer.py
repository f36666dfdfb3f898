"""A py-libp2p host for InteropTests: prints its address, serves ping, identify and an echo. Given an address, it dials that, pings, identifies and echoes.

Needs libp2p 0.8.1 from PyPI."""
import sys

import trio
from libp2p import new_host
from libp2p.crypto.secp256k1 import create_new_key_pair
from libp2p.security.noise.transport import Transport as NoiseTransport, PROTOCOL_ID as NOISE
from libp2p.crypto.x25519 import create_new_key_pair as x_key
from libp2p.stream_muxer.yamux.yamux import Yamux, PROTOCOL_ID as YAMUX
from libp2p.host.ping import PingService, handle_ping, ID as PING
from libp2p.identity.identify.identify import ID as IDENTIFY, parse_identify_response
from libp2p.peer.peerinfo import info_from_p2p_addr
import multiaddr
from libp2p.custom_types import TProtocol
ECHO=TProtocol("/echo/1.0.0")

async def echo(stream):
    while True:
        try:
            data = await stream.read(65536)
        except Exception:
            break
        if not data: break
        await stream.write(data)
    await stream.close()

async def main():
    key = create_new_key_pair()
    noise = NoiseTransport(libp2p_keypair=key, noise_privkey=x_key().private_key)
    host = new_host(key_pair=key, sec_opt={NOISE: noise}, muxer_opt={TProtocol(YAMUX): Yamux})
    host.set_stream_handler(ECHO, echo)
    host.set_stream_handler(PING, handle_ping)
    async with host.run(listen_addrs=[multiaddr.Multiaddr("/ip4/127.0.0.1/tcp/0")]):
        print(f"address {host.get_addrs()[0]}", flush=True)
        if len(sys.argv) > 1:
            info = info_from_p2p_addr(multiaddr.Multiaddr(sys.argv[1]))
            await host.connect(info)
            rtts = await PingService(host).ping(info.peer_id, ping_amt=3)
            print(f"pinged {len(rtts)}", flush=True)
            s = await host.new_stream(info.peer_id, [IDENTIFY])
            raw = b""
            while True:
                try: part = await s.read(65536)
                except Exception as e: break
                if not part: break
                raw += part
            msg = parse_identify_response(raw)
            print("identified", msg.agent_version, ",".join(msg.protocols), flush=True)
            s = await host.new_stream(info.peer_id, [ECHO])
            data = bytes(range(256)) * 4096
            async def send():
                for i in range(0, len(data), 50000):
                    await s.write(data[i:i+50000])
                await s.close()
            got = bytearray()
            async with trio.open_nursery() as n:
                n.start_soon(send)
                while len(got) < len(data):
                    got += await s.read(65536)
            print("echoed", len(got), bytes(got) == data, flush=True)
        await trio.sleep(float("inf"))
trio.run(main)
