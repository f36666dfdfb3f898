"""A stand-in for a push service over TLS on loopback, with Python's standard library alone. Arguments: certificate, key.

Prints "port N", then a JSON line for each request. The path chooses the answer: /status/N[/RETRY-AFTER], /slow/SECONDS/N, /redirect, /huge[/N], /endless, /silent,
/limit/N (413 to a body of more than N bytes), /held/N (once there was a request with /release), else 201.
"""
import base64
import http.server
import json
import ssl
import sys
import threading
import time


released = threading.Event()
# Requests are answered on several threads, and print() writes a line and its end one after the other.
printing = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        line = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                "body": base64.urlsafe_b64encode(body).rstrip(b"=").decode(), "connection": self.client_address[1]}
        with printing:
            print(json.dumps(line), flush=True)
        parts = self.path.split("/")
        if parts[1] == "status":
            self.send_response(int(parts[2]))
            if len(parts) > 3:
                self.send_header("Retry-After", parts[3])
            self.finish_empty()
        elif parts[1] == "slow":
            time.sleep(float(parts[2]))
            self.send_response(int(parts[3]))
            self.finish_empty()
        elif parts[1] == "held":
            released.wait()
            self.send_response(int(parts[2]))
            self.finish_empty()
        elif parts[1] == "redirect":
            self.send_response(307)
            self.send_header("Location", "/redirected")
            self.finish_empty()
        elif parts[1] == "huge":
            self.send_response(int(parts[2]) if len(parts) > 2 else 201)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.wfile.write(b"x" * 100000)
        elif parts[1] == "endless":
            self.send_response(201)
            self.end_headers()
            while True:
                self.wfile.write(b"x")
                time.sleep(0.01)
        elif parts[1] == "limit":
            self.send_response(413 if len(body) > int(parts[2]) else 201)
            self.finish_empty()
        elif parts[1] == "silent":
            time.sleep(60)
        else:
            if parts[1] == "release":
                released.set()
            self.send_response(201)
            self.finish_empty()

    def finish_empty(self):
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("port", server.server_address[1], flush=True)
server.serve_forever()
