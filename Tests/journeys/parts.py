"""The processes and servers of a journey, all on 127.0.0.1."""

import base64
import contextlib
import datetime
import functools
import http.server
import ipaddress
import json
import os
import random
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

PYTHON_PEERS = Path(__file__).resolve().parents[1] / "Interop"


class Failed(Exception):
    """An invariant doesn't hold."""


class Skipped(Exception):
    """This machine lacks something that the journey needs."""


reserved = []


def free_port():
    """For a server that sets SO_REUSEADDR. The port stays bound, so that the system gives it to no other socket before the server starts."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
    reserved.append(one)
    return one.getsockname()[1]


def until(what, condition, seconds=60):
    """The first value of `condition()` that is true."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"not seen within {seconds} s: {what}")
        time.sleep(0.05)


def end(process, signals=(signal.SIGTERM, signal.SIGKILL)):
    """Its exit code."""
    for number in signals:
        if process.poll() is None:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
    return process.wait()


def get(url, timeout=3):
    """Status and body; (None, b"") if there is no answer."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return None, b""


def post(url, content, timeout=10):
    return post_bytes(url, json.dumps(content).encode(), timeout, "application/json")


def post_bytes(url, body, timeout=10, kind="application/octet-stream"):
    request = urllib.request.Request(url, body, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return None, b""


def certificate(folder):
    """A self-signed certificate of 127.0.0.1 that is its own authority. Returns the paths of certificate and key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "push service")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256()))
    paths = folder / "push.pem", folder / "push.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return paths


class EndpointServer(http.server.ThreadingHTTPServer):
    """Closes its open connections with itself: each has a thread of its own, which would go on answering."""

    daemon_threads = True

    def __init__(self, *arguments):
        self.connections, self.lock = set(), threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request, address):
        with self.lock:
            self.connections.add(request)
        super().process_request(request, address)

    def shutdown_request(self, request):
        with self.lock:
            self.connections.discard(request)
        super().shutdown_request(request)

    def server_close(self):
        super().server_close()
        with self.lock:
            for connection in self.connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_):
        pass


class Endpoint:
    """Where the node posts: a gorush, or a push service of Web Push. `delivered` has the ids of each device's notifications, in order."""

    def __init__(self, tls=None):
        self.mode, self.delivered, self.lock = "works", {}, threading.Lock()
        self.port, self.tls, self.server = free_port(), tls, None
        self.up()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def up(self):
        self.server = EndpointServer(("127.0.0.1", self.port), functools.partial(Handler, self))
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def down(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def set(self, mode):
        """works, away, refuses (503) or slow."""
        if mode == "away":
            self.down()
        elif not self.server:
            self.up()
        self.mode = mode

    def note(self, device, identifier):
        with self.lock:
            self.delivered.setdefault(device, []).append(identifier)

    def to(self, device):
        with self.lock:
            return list(self.delivered.get(device, []))


class Gorush(Endpoint):
    def take(self, path, headers, body):
        notifications = json.loads(body)["notifications"]
        for one in notifications:
            for token in one["tokens"]:
                self.note(token, one["notif_id"])
        counts = sum(len(one["tokens"]) for one in notifications)
        return 200, json.dumps({"success": "ok", "counts": counts, "logs": []}).encode()


class Gorush2019(Gorush):
    """gorush 1.12: it parses requests into its own types as Go does, and names a failed notification only by its token without beginning and end."""

    # JSON types of the fields that it knows; anything else is ignored.
    FIELDS = {
        "tokens": list, "platform": int, "message": str, "title": str, "priority": str, "content_available": bool, "mutable_content": bool,
        "sound": (str, dict), "data": dict, "retry": int, "topic": str, "api_key": str, "to": str, "collapse_key": str, "delay_while_idle": bool,
        "time_to_live": int, "restricted_package_name": str, "dry_run": bool, "condition": str, "notification": dict, "expiration": int,
        "apns_id": str, "collapse_id": str, "badge": int, "category": str, "thread-id": str, "url-args": list, "alert": dict, "production": bool,
        "development": bool, "name": str, "volume": (int, float)}
    # The push service's answer to one device's first notification: an error that says nothing about the token.
    ERRORS = {1: ("ios", "InternalServerError"), 2: ("android", "internal server error")}

    def take(self, path, headers, body):
        notifications = json.loads(body)["notifications"]
        for one in notifications:
            for name, kind in self.FIELDS.items():
                value = one.get(name)
                if value is not None and (not isinstance(value, kind) or isinstance(value, bool) != (kind is bool)):
                    return 400, json.dumps({"code": 400, "message": f"json: cannot unmarshal into field {name}"}).encode()
            if one["platform"] not in self.ERRORS:
                return 400, json.dumps({"code": 400, "message": "the platform is unknown"}).encode()
        logs = []
        for one in notifications:
            platform, error = self.ERRORS[one["platform"]]
            for token in one["tokens"]:
                is_first = not self.to(token)
                self.note(token, one["notif_id"])
                if is_first:
                    hidden = token.replace(token[-10:], "*" * 10).replace(token[:10], "*" * 10)
                    logs.append({"type": "failed-push", "platform": platform, "token": hidden, "message": one.get("message", ""), "error": error})
        counts = sum(len(one["tokens"]) for one in notifications)
        return 200, json.dumps({"counts": counts, "logs": logs, "success": "ok"}, separators=(",", ":")).encode()


class PushService(Endpoint):
    """Subscriptions with their private keys, and what arrives for them, decrypted by http-ece."""

    def __init__(self, folder):
        self.keys = {}
        super().__init__(certificate(folder))

    def subscribe(self, name):
        """A subscription in the form of browsers."""
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec

        key, secret = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)
        point = key.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        self.keys[name] = key, secret
        texts = {field: base64.urlsafe_b64encode(data).rstrip(b"=").decode() for field, data in (("p256dh", point), ("auth", secret))}
        return {"endpoint": f"{self.url}/{name}", "expirationTime": None, "keys": texts}

    def take(self, path, headers, body):
        import http_ece

        name = path[1:]
        key, secret = self.keys[name]
        content = json.loads(http_ece.decrypt(body, private_key=key, auth_secret=secret, version="aes128gcm"))
        self.note(name, content["id"])
        return 201, b""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, endpoint, *arguments):
        self.endpoint = endpoint
        super().__init__(*arguments)

    def do_GET(self):
        self.finish_with(200 if self.endpoint.mode != "refuses" else 503, b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.endpoint.mode == "refuses":
            return self.finish_with(503, b"")
        if self.endpoint.mode == "slow":
            time.sleep(1.5)
        self.finish_with(*self.endpoint.take(self.path, self.headers, body))

    do_HEAD = do_GET

    def finish_with(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class PostgreSQL:
    """A server in a folder of its own, on a Unix socket, of the programs in WAKU_PUSH_TEST_POSTGRESQL or of Debian's package. With `primary` it is that
    one's synchronous standby."""

    def __init__(self, primary=None):
        given = os.environ.get("WAKU_PUSH_TEST_POSTGRESQL")
        self.programs = Path(given) if given else max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        # Paths of sockets are short.
        self.folder = Path(tempfile.mkdtemp(prefix="waku-push-pg-", dir="/tmp"))
        self.user = "postgres" if os.getuid() == 0 else None
        self.standby = None
        if self.user:
            shutil.chown(self.folder, self.user)
        if primary:
            self.run("pg_basebackup", "-D", self.data, "-d", primary.address("postgres"), "-R", "-c", "fast")
        else:
            self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self.up()
        if primary:
            # The copy of the settings in the standby was made before, so that it waits for nobody once it is promoted.
            primary.run("psql", "-qX", "-d", primary.address("postgres"), "-c", "ALTER SYSTEM SET synchronous_standby_names = '*'",
                        "-c", "SELECT pg_reload_conf()")
            until("a synchronous standby", lambda: primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1")
            primary.standby = self

    @property
    def data(self):
        return self.folder / "data"

    def run(self, program, *arguments):
        with open(self.folder / "log", "ab") as log:
            subprocess.run([self.programs / program, *arguments], user=self.user, cwd=self.folder, check=True, stdout=log, stderr=log)

    def ask(self, statement):
        return subprocess.run([self.programs / "psql", "-AtX", "-d", self.address("postgres"), "-c", statement], user=self.user, cwd=self.folder,
                              check=True, capture_output=True, text=True).stdout.strip()

    def up(self):
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c shared_buffers=32MB"
        self.run("pg_ctl", "-D", self.data, "-l", self.folder / "server.log", "-o", options, "-w", "start")

    def down(self, how="immediate"):
        self.run("pg_ctl", "-D", self.data, "-w", "-m", how, "stop")

    def fail_over(self):
        """Ends this server as a power cut does, and promotes the standby."""
        self.down()
        self.standby.run("pg_ctl", "-D", self.standby.data, "-w", "promote")

    def address(self, database):
        """A connection string; it names both servers if there is a standby."""
        if self.standby:
            return f"host={self.folder},{self.standby.folder} user=postgres dbname={database} target_session_attrs=read-write"
        return f"host={self.folder} user=postgres dbname={database}"

    def database(self, name):
        """A new, empty database. Returns its connection string."""
        self.run("createdb", "-h", self.folder, "-U", "postgres", name)
        return self.address(name)

    def end(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.down()
        shutil.rmtree(self.folder, ignore_errors=True)


class SmallDisk:
    """A file system of its own that can be filled."""

    BYTE_COUNT = 48 << 20

    def __init__(self, folder):
        self.folder, self.filler = folder, folder / "filler"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.BYTE_COUNT}", "tmpfs", folder], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(f"a file system can't be mounted: {done.stderr.strip()}")

    def fill(self):
        with open(self.filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self):
        self.filler.unlink(missing_ok=True)

    def end(self):
        subprocess.run(["umount", "-l", self.folder], check=False)


class Clock:
    """The wall clock of processes that are started with `environment`, which can be set. Their monotonic clock goes on."""

    def __init__(self, folder):
        compiler = shutil.which("cc") or shutil.which("clang")
        if not compiler:
            raise Skipped("clock.c can't be compiled: there is no cc")
        self.file, library = folder / "clock", folder / "clock.so"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("clock.c")], check=True)
        self.environment = {"LD_PRELOAD": str(library), "JOURNEY_CLOCK": str(self.file)}
        self.file.write_bytes(bytes(8))

    def step(self, seconds):
        """Sets it to the real time and so many seconds."""
        with open(self.file, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", seconds))


class LossyRelay:
    """A TCP proxy before a Waku node whose connections do not last: it cuts each after a while, with all that is on its way."""

    def __init__(self, target, seed=0):
        self.target, self.chance, self.is_lossy = target, random.Random(seed), False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                inward, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(inward,), daemon=True).start()

    def serve(self, inward):
        try:
            outward = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            return inward.close()
        # Bytes in both directions, or seconds, until it is cut.
        left, deadline = self.chance.randrange(500, 30_000), time.monotonic() + self.chance.uniform(0.3, 4)
        peers = {inward.fileno(): (inward, outward), outward.fileno(): (outward, inward)}
        # Unlike select, without a limit of descriptors: a process of a hundred journeys has many.
        readable = select.poll()
        for one in peers:
            readable.register(one, select.POLLIN)
        with inward, outward:
            while True:
                ready = readable.poll(100)
                if self.is_lossy and (left <= 0 or time.monotonic() > deadline):
                    return
                for descriptor, _ in ready:
                    source, target = peers[descriptor]
                    try:
                        data = source.recv(65536)
                        target.sendall(data[:max(left, 0)] if self.is_lossy else data)
                    except OSError:
                        return
                    if not data:
                        return
                    left -= len(data) if self.is_lossy else 0

    def end(self):
        self.listener.close()


class StorageServer:
    """A storage server of Session's network that is all of its swarms: Tests/Interop/session_network.py."""

    def __init__(self, folder):
        self.commands = folder / "storage.commands"
        self.commands.touch()
        self.process = subprocess.Popen([sys.executable, PYTHON_PEERS / "session_network.py", self.commands, "0"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()
        _, _, port, key, swarm = until("a storage server", lambda: self.said("server")).split()
        self.nodes = folder / "storage.json"
        self.nodes.write_text(json.dumps([{"pubkey_x25519": key, "ip": "127.0.0.1", "port": int(port), "swarm_id": swarm}]))

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def said(self, word, since=0):
        return next((line for line in self.lines[since:] if line.startswith(word)), None)

    def monitored(self, account, since=0):
        return self.said(f"entry 0 {account} ", since)

    def message(self, account, digest):
        """The number of connections on which it was told."""
        since, now = len(self.lines), int(time.time() * 1000)
        with open(self.commands, "a", encoding="ascii") as file:
            file.write(f"message 0 {account} {digest} 100 {now} {now + 600_000}\n")
        return int(until("a message is told", lambda: self.said("told", since)).split()[2])

    def end(self):
        end(self.process)


class PyLibP2P:
    """A Waku node of py-libp2p: Tests/Interop/py_waku_relay.py."""

    def __init__(self, folder, pubsub_topic):
        self.commands = folder / "relay.commands"
        self.commands.touch()
        self.process = subprocess.Popen([sys.executable, PYTHON_PEERS / "py_waku_relay.py", self.commands, pubsub_topic],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()
        said = until("py-libp2p's address", lambda: next((line for line in list(self.lines) if line.startswith("address ")), None))
        self.address = said.split()[1]

    def join(self, peer):
        """Gossips with another node from now on."""
        with open(self.commands, "a", encoding="ascii") as file:
            file.write(f"dial {peer}\n")
        until("a mesh with py-libp2p", lambda: any(line.startswith("mesh ") and line != "mesh 0\n" for line in list(self.lines)))

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def end(self):
        end(self.process)


class Command:
    """The program under test, with a folder for its files."""

    def __init__(self, binary, folder):
        self.binary, self.folder = str(Path(binary).resolve()), folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("WAKU_PUSH_")}

    def run(self, *arguments, allowed=(0,), seconds=60):
        """Its exit code and output."""
        done = subprocess.run([self.binary, *map(str, arguments)], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=seconds)
        if done.returncode not in allowed:
            raise Failed(f"waku-push {' '.join(map(str, arguments))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.returncode, done.stdout.strip()

    def output(self, *arguments):
        return self.run(*arguments)[1]


class Daemon:
    """A `waku-push serve` that can be started again with the same ports."""

    def __init__(self, command, name, arguments):
        self.command, self.name = command, name
        self.http, self.rest, self.gossip = (free_port() for _ in range(3))
        self.data, self.log = command.folder / name, command.folder / f"{name}.log"
        self.arguments, self.store, self.process, self.environment = arguments, [], None, {}

    def start(self):
        with open(self.log, "ab") as log:
            arguments = ["serve", "--data", self.data, "--http", f"127.0.0.1:{self.http}", *self.arguments, *self.store]
            self.process = subprocess.Popen([self.command.binary, *map(str, arguments)], cwd=self.command.folder,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.command.environment | self.environment)

    def await_ready(self):
        def ready():
            if self.process.poll() is not None:
                raise Failed(f"{self.name} exited with {self.process.returncode} while it started\n{self.log.read_text()[-2000:]}")
            status, reasons = get(f"http://127.0.0.1:{self.http}/readyz")
            # Where the endpoint is away by intent, the node says so.
            return status == 200 or status == 503 and all(line.startswith("gorush") for line in reasons.decode().splitlines())
        # py-libp2p can miss that a node was restarted, and sends it no subscription then: the node dials it again after a minute.
        until(f"{self.name} is ready", ready, 100)

    def stop(self):
        code = end(self.process)
        if code != 0:
            raise Failed(f"{self.name} ended with {code} after SIGTERM")

    def kill(self):
        end(self.process, (signal.SIGKILL,))

    @property
    def runs(self):
        return self.process is not None and self.process.poll() is None
