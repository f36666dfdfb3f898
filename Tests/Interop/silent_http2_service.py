"""An HTTP/2 server over TLS on loopback, with Python's standard library alone. Arguments: certificate, key.

Prints "port N", then a JSON line for each request, as web_push_service.py does; the path and the headers, which are compressed, are left out. The first connection answers its first request,
and then sends nothing any more; other connections answer all with 200.
"""
import itertools
import json
import socket
import ssl
import sys
import threading

HEADERS, SETTINGS = 1, 4
END_STREAM, ACKNOWLEDGED, END_HEADERS = 1, 1, 4
# The header compression's static table has ":status: 200" at 8.
STATUS_200 = bytes([0x80 | 8])

printing = threading.Lock()


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def serve(plain, address, number):
    try:
        connection = context.wrap_socket(plain, server_side=True)
        reader = connection.makefile("rb")
        reader.read(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        connection.sendall(frame(SETTINGS, 0, 0))
        requests = 0
        while len(head := reader.read(9)) == 9:
            reader.read(int.from_bytes(head[:3], "big"))
            kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
            if kind == HEADERS:
                requests += 1
                with printing:
                    print(json.dumps({"path": "", "headers": {}, "body": "", "connection": address[1]}), flush=True)
            if number == 0 and requests > 1:
                continue
            if kind == HEADERS:
                connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream, STATUS_200))
            elif kind == SETTINGS and not flags & ACKNOWLEDGED:
                connection.sendall(frame(SETTINGS, ACKNOWLEDGED, 0))
    except OSError:
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
context.set_alpn_protocols(["h2"])
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
for number in itertools.count():
    plain, address = listener.accept()
    threading.Thread(target=serve, args=(plain, address, number), daemon=True).start()
