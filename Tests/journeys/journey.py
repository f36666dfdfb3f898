"""One journey: a row of the table with real processes, and what must hold afterwards."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

from clients import NOT_YET, VECTORS, Device, Recorded, Session, Status, StatusV01
from parts import (Clock, Command, Daemon, Failed, Gorush, Gorush2019, LossyRelay, PostgreSQL, PushService, PyLibP2P, Skipped, SmallDisk, StorageServer,
                   free_port, get, post, until)

PUBSUB = "/waku/2/rs/16/32"


class World:
    """The node or nodes under test with all neighbours, in a folder of their own."""

    def __init__(self, binary, row, folder, former=None):
        self.row, self.folder = row, folder
        self.command = Command(binary, folder)
        # What the nodes run until they are upgraded.
        self.former = Command(former, folder) if former else None
        self.endpoints, self.nodes, self.ends = [], [], []
        self.identity = ["--identity", folder / "node.key"]
        self.store, self.databases = None, 0  # the connection string; None for SQLite
        self.disk, self.clock, self.lossy = None, None, None

    # Start and end

    def start(self):
        row, folder = self.row, self.folder
        if row["client"] == "recorded":
            file = folder / "node.key"
            file.touch(0o600)
            file.write_text(next(key["private_key"] for key in VECTORS["keys"] if key["name"] == "server") + "\n")
        else:
            self.command.run("identity", "new", "--out", "node.key")
        self.key = self.command.output("identity", "show", "--public-key", "--identity", "node.key")
        if "web push" in row["endpoint"]:
            self.command.run("identity", "new-vapid", "--out", "vapid.key")
            self.vapid = self.command.output("identity", "show", "--web-push-key", "vapid.key", "--identity", "node.key").split()[-1]
            self.push_service = self.endpoint(PushService(folder))
        if self.speaks("session"):
            self.storage = StorageServer(folder)
            self.ends.append(self.storage.end)
        if row["store"] != "sqlite":
            self.start_database()
            if row["store"] == "postgresql with standby":
                self.ends.append(PostgreSQL(primary=self.database_server).end)
            self.store = self.new_database()
        options = self.endpoint_options() + self.protocol_options()
        if row["network"] == "py-libp2p":
            relay = PyLibP2P(folder, PUBSUB)
            self.ends.append(relay.end)
            self.peer = relay.address
        elif row["network"] != "inside":
            self.hub = self.network(Daemon(self.command, "hub", []))
            self.peer = self.multiaddr(self.hub)
        if row["client"] == "light":
            self.filter_node = relay if row["network"] == "py-libp2p" else PyLibP2P(folder, PUBSUB)
            if row["network"] != "py-libp2p":
                self.ends.append(self.filter_node.end)
                self.filter_node.join(self.peer)
        if row["adversity"] == "lossy relay":
            self.lossy = LossyRelay(self.hub.rest if row["network"] == "rest" else int(self.peer.split("/")[4]))
            self.ends.append(self.lossy.end)
        if row["adversity"] == "full disk":
            self.disk = SmallDisk(folder / "disk")
            self.ends.append(self.disk.end)
        if row["adversity"] == "clock step":
            self.clock = Clock(folder)
        for number in range(row["nodes"]):
            node = Daemon(self.former or self.command, f"node-{number + 1}", [*self.identity, *options])
            self.nodes.append(node)
            if self.disk:
                node.data = self.disk.folder / node.name
            if self.clock and number == 0:
                node.environment = self.clock.environment
            node.arguments += self.network_options(node)
            if self.speaks("session"):
                node.session = free_port()
                node.arguments += ["--session-http", f"127.0.0.1:{node.session}"]
        self.use(self.store)
        self.fill_store()
        started(self)
        if row["network"] == "inside":
            self.hub = self.nodes[0]

    def fill_store(self):
        """Called before the nodes start for the first time: by default they start with an empty store."""

    def end(self):
        for node in self.nodes:
            with contextlib.suppress(Exception):
                node.kill()
        for end in reversed(self.ends):
            with contextlib.suppress(Exception):
                end()

    def endpoint(self, one):
        self.endpoints.append(one)
        self.ends.append(one.down)
        return one

    def network(self, hub):
        """A Waku network of one node: REST API, store, filter, light push, and gossip."""
        self.command.run("identity", "new", "--out", "hub.key")
        hub.arguments += ["--identity", "hub.key", *self.inside(hub)]
        self.ends.append(hub.kill)
        hub.start()
        until("the network's node", lambda: get(f"http://127.0.0.1:{hub.http}/healthz")[0] == 200)
        return hub

    def speaks(self, protocol):
        return self.row["protocols"] in (protocol, "all")

    # Options of the node

    def inside(self, daemon):
        return ["--relay", "loopback", "--loopback-listen", f"127.0.0.1:{daemon.rest}", "--listen", f"/ip4/127.0.0.1/tcp/{daemon.gossip}"]

    def endpoint_options(self):
        kind = self.row["endpoint"]
        options = []
        if kind == "two gorush":
            apple, google = self.endpoint(Gorush()), self.endpoint(Gorush())
            (self.folder / "node.yaml").write_text(
                "gorush-endpoints:\n"
                f"  - name: gorush-apple\n    url: {apple.url}\n    platforms: [apn]\n    apn-topics: [im.status.ethereum, com.loki-project.loki-messenger, '']\n"
                f"  - name: gorush-google\n    url: {google.url}\n    platforms: [firebase, huawei]\n")
            options += ["--config", self.folder / "node.yaml"]
        elif kind == "web push":
            options += ["--gorush", "none"]
        else:
            options += ["--gorush", self.endpoint(Gorush2019() if kind == "gorush 2019" else Gorush()).url]
        if "web push" in kind:
            options += ["--web-push", "--web-push-key", self.folder / "vapid.key", "--web-push-contact", "mailto:operator@example.org",
                        "--web-push-allow", "127.0.0.1", "--web-push-ca", self.folder / "push.pem"]
        return options

    def protocol_options(self):
        options = ["--status-v0.1"] if self.speaks("v0.1") else []
        if self.speaks("session"):
            self.command.run("session", "key", "new", "--out", "onion.key")
            options += ["--session-nodes", self.storage.nodes, "--session-onion-key", self.folder / "onion.key",
                        "--session-apns-topic", "com.loki-project.loki-messenger"]
        return options

    def network_options(self, node):
        network = self.row["network"]
        if network == "inside":
            return self.inside(node)
        if network == "rest":
            return ["--relay", f"http://127.0.0.1:{self.lossy.port if self.lossy else self.hub.rest}", "--poll-interval", "100ms"]
        if self.lossy:
            _, protocol, host, _, _, *rest = self.peer.split("/")
            return ["--relay", "/".join(["", protocol, host, "tcp", str(self.lossy.port), *rest])]
        return ["--relay", self.peer]

    def multiaddr(self, daemon):
        def address():
            lines = [line for line in daemon.log.read_text().splitlines() if "libp2p listening" in line]
            return lines and lines[-1].split("address=")[1].split()[0]
        return until("a libp2p address", address)

    def start_database(self):
        self.database_server = PostgreSQL()
        self.ends.append(self.database_server.end)

    def use(self, store):
        """The store with which the nodes start from now on."""
        self.store = store
        for node in self.nodes:
            cluster = ["--cluster", node.name] if len(self.nodes) > 1 else []
            node.store = ["--store", store, *cluster] if store else []

    def new_database(self):
        self.databases += 1
        return self.database_server.database(f"push{self.databases}")

    # Commands

    def client(self, *arguments, allowed=(0,)):
        """A command of the client, by the row's transport. Returns its exit code."""
        over = self.row["clients over"]
        # A node that was moved to another folder has another peer id.
        peer = self.multiaddr(self.hub) if self.row["network"] == "inside" else self.peer
        relay = [f"http://127.0.0.1:{self.hub.rest}" if over == "rest" else peer]
        if self.row["client"] == "light":
            relay = [self.filter_node.address, "--attach", "filter"]
        return self.command.run("client", *arguments, "--relay", *relay, "--timeout", "15s", allowed=allowed)[0]

    def admin(self, *arguments, node=None):
        node = node or self.nodes[0]
        store = ["--store", self.store] if self.store else []
        return self.command.output("admin", *arguments, "--data", node.data, *store, *self.identity)

    # The network's REST API

    def publish(self, topic, payload):
        url, path = f"http://127.0.0.1:{self.hub.rest}/relay/v1", PUBSUB.replace("/", "%2F")
        message = {"payload": payload, "contentTopic": topic, "version": 1, "timestamp": time.time_ns()}
        if post(f"{url}/messages/{path}", message)[0] == 400:
            # A Waku node accepts messages only on topics with a subscription, which is forgotten when it restarts.
            post(f"{url}/subscriptions", [PUBSUB])
            post(f"{url}/messages/{path}", message)

    def stored(self, topic=None):
        """The last messages in the network's store."""
        topics = f"&contentTopics={topic.replace('/', '%2F')}" if topic else ""
        status, body = get(f"http://127.0.0.1:{self.hub.rest}/store/v3/messages?pubsubTopic={PUBSUB.replace('/', '%2F')}{topics}"
                           "&includeData=true&pageSize=100&ascending=false")
        return [one["message"] for one in json.loads(body)["messages"]] if status == 200 else []

    def session_url(self):
        return next(f"http://127.0.0.1:{node.session}" for node in self.nodes if get(f"http://127.0.0.1:{node.session}/healthz")[0] == 200)


# What happens in the life of a node. Each is given a function that notifies the devices while it happens, where that is possible.

def nothing(world, notify):
    pass


def restart(world, notify):
    for node in world.nodes:
        node.stop()
        node.start()
        node.await_ready()


def upgrade(world, notify):
    """One node after the other, so that several nodes of two releases share the database meanwhile."""
    for node in world.nodes:
        node.stop()
        node.command = world.command
        node.start()
        node.await_ready()
        notify()


def kill(world, notify):
    node = world.nodes[0]
    node.kill()
    if len(world.nodes) > 1:
        notify()
    node.start()
    node.await_ready()


def stopped(world):
    for node in world.nodes:
        node.stop()


def started(world):
    for node in world.nodes:
        node.start()
    for node in world.nodes:
        node.await_ready()


def migrate(world, notify):
    """There and back, with a start of one node between them."""
    stopped(world)
    every, node = world.nodes, world.nodes[0]
    world.nodes = [node]
    moved = world.folder / "moved"
    if world.store:
        world.admin("migrate", "--to", moved)
        node.data = moved
        world.use(None)
    else:
        world.start_database()
        database = world.new_database()
        world.admin("migrate", "--to", database)
        world.use(database)
    started(world)
    stopped(world)
    if world.store:
        world.admin("migrate", "--to", moved)
        node.data = moved
        world.use(None)
    else:
        database = world.new_database()
        world.admin("migrate", "--to", database)
        world.nodes = every
        world.use(database)
    started(world)


def backup(world, notify):
    """A backup of the running node, restored into an empty store; with PostgreSQL by its own tools."""
    if world.store:
        dump, before = world.database_server.folder / "dump", world.store
        world.database_server.run("pg_dump", "-Fc", "-d", before, "-f", dump)
        stopped(world)
        world.use(world.new_database())
        world.database_server.run("pg_restore", "-d", world.store, dump)
    else:
        world.admin("backup", world.folder / "backup")
        stopped(world)
        shutil.move(world.nodes[0].data, world.folder / "lost")
        world.admin("restore", world.folder / "backup")
    started(world)


def export(world, notify):
    """All registrations into a new store. What waits is not exported."""
    world.admin("registrations", "export", world.folder / "exported")
    stopped(world)
    if world.store:
        world.use(world.new_database())
    else:
        shutil.move(world.nodes[0].data, world.folder / "left")
    world.admin("registrations", "import", world.folder / "exported")
    started(world)


def rotate(world, notify):
    stopped(world)
    world.admin("rotate-storage-key")
    started(world)


def drain(world, notify):
    for node in world.nodes:
        world.admin("drain", node=node)
    notify()
    for node in world.nodes:
        world.admin("drain", "--undo", node=node)


def reload(world, notify):
    for node in world.nodes:
        node.process.send_signal(signal.SIGHUP)
    notify()


def database_restart(world, notify):
    world.database_server.down()
    time.sleep(1)
    world.database_server.up()
    for node in world.nodes:
        node.await_ready()


def failover(world, notify):
    world.database_server.fail_over()
    notify()
    for node in world.nodes:
        node.await_ready()


def pause(world, notify):
    node = world.nodes[0]
    node.process.send_signal(signal.SIGSTOP)
    try:
        notify()
    finally:
        node.process.send_signal(signal.SIGCONT)
    node.await_ready()


LIVES = {"none": nothing, "restart": restart, "kill": kill, "migrate": migrate, "backup": backup, "export": export, "rotate": rotate,
         "drain": drain, "reload": reload, "database restart": database_restart, "failover": failover, "pause": pause}
# Where a notification whose post was under way may be posted again, with the same id.
# An export has no records of handled messages: the new store catches up with those of the last minutes.
REPEATS = {"kill", "pause", "database restart", "failover", "full disk", "export"}
# Where a request may stay without an answer although it was handled, or not be handled at all.
UNCERTAIN = {"lossy relay", "full disk"}
# How far a wall clock is set forward, and back again afterwards: less than the age up to which requests are handled.
CLOCK_STEP = 240


class Network:
    """What others do on the Waku network meanwhile: junk on the node's topics, or a repetition of each message."""

    def __init__(self, world, kind):
        self.world, self.kind, self.stopping = world, kind, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True) if kind in ("junk", "replay") else None
        if self.thread:
            self.thread.start()

    def stop(self):
        self.stopping.set()
        if self.thread:
            self.thread.join()

    def run(self):
        import base64

        repeated = set()
        while not self.stopping.wait(0.1):
            for message in self.world.stored():
                topic, payload = message["contentTopic"], message["payload"]
                if self.kind == "junk":
                    self.world.publish(topic, base64.b64encode(os.urandom(300)).decode())
                elif payload not in repeated:
                    repeated.add(payload)
                    self.world.publish(topic, payload)


class Journey:
    def __init__(self, binary, row, former=None):
        self.row, self.binary, self.former = row, binary, former

    def run(self):
        """Raises Failed if something doesn't hold."""
        self.folder = Path(tempfile.mkdtemp(prefix="waku-push-journey-"))
        self.world = world = World(self.binary, self.row, self.folder, self.former)
        try:
            world.start()
            self.travel(world)
        except Skipped:
            raise
        except Exception as error:
            logs = "\n".join(f"--- {node.name}\n{node.log.read_text()[-3000:]}" for node in world.nodes if node.log.exists())
            raise Failed(f"{error if isinstance(error, Failed) else repr(error)}\n{logs}") from error
        finally:
            world.end()
            shutil.rmtree(self.folder, ignore_errors=True)

    def travel(self, world):
        row = self.row
        client = {"remembered": lambda device: Status(world, device, True), "one-shot": lambda device: Status(world, device, False),
                  "light": lambda device: Status(world, device, True), "recorded": lambda device: Recorded(world, device),
                  "v0.1": lambda device: StatusV01(world, device), "session": lambda device: Session(world, device, False),
                  "session by onion": lambda device: Session(world, device, True)}[row["client"]]
        kinds = {"gorush": ["apn"], "gorush 2019": ["apn", "firebase"], "two gorush": ["apn", "firebase"], "web push": ["webpush"], "gorush and web push": ["firebase", "webpush"]}[row["endpoint"]]
        if row["client"] == "v0.1":
            kinds = [kind for kind in kinds if kind != "webpush"]
        if row["client"] == "recorded":
            kinds = ["apn"]
        self.devices = [Device(world, f"phone{number}", kind) for number, kind in enumerate(kinds)]
        self.clients = [client(device) for device in self.devices]
        if row["client"] == "recorded":
            self.devices[0].token = Recorded.TOKEN
        self.expected = {device: 0 for device in self.devices}
        self.possible = dict(self.expected)

        for one in self.clients:
            one.register()
        if not self.former:
            self.check_counted(world)
        network = Network(world, row["adversity"])
        # A relay keeps few messages for a client of its REST API, which gets most of a flood from the store.
        is_flooded = row["adversity"] == "junk" and row["network"] == "rest"
        mode = {"endpoint away": "away", "endpoint refuses": "refuses", "endpoint slow": "slow"}.get(row["adversity"], "works")
        for endpoint in world.endpoints:
            endpoint.set(mode)
        if mode != "works" and row["life"] == "export":
            # Waiting notifications are not exported.
            for endpoint in world.endpoints:
                endpoint.set("works")
        self.is_uncertain = is_flooded or row["adversity"] in UNCERTAIN
        if world.disk:
            world.disk.fill()
        if world.lossy:
            world.lossy.is_lossy = True
        if world.clock:
            world.clock.step(CLOCK_STEP)
            if row["nodes"] == 3:
                # For a second, until it has seen that its clock is off, it answers with a time that clients do not take, and some of them ask once only.
                until("the node whose clock is off is not ready", lambda: get(f"http://127.0.0.1:{world.nodes[0].http}/readyz")[0] == 503)
        self.notify()
        if mode == "away" and row["life"] != "export":
            self.check_waiting(world)
        if world.disk:
            # Nothing in a node's life can be expected to work without room for it.
            world.disk.free()
            self.is_uncertain = False
        if world.clock and row["nodes"] == 3:
            # A node whose clock is off takes no share of the cluster and is not ready, by design.
            world.clock.step(0)
        if row["life"] == "export":
            self.await_all()
        if self.former:
            upgrade(world, self.notify)
        was_uncertain = self.is_uncertain
        # Until the standby is promoted, the node refuses what it can't store, and these clients do not ask again.
        self.is_uncertain |= row["life"] == "failover" and row["client"] in ("one-shot", "recorded")
        LIVES[row["life"]](world, self.notify)
        self.is_uncertain = was_uncertain
        for endpoint in world.endpoints:
            endpoint.set("works" if mode != "slow" else "slow")
        if is_flooded:
            network.stop()
        if world.lossy:
            world.lossy.is_lossy = False
        if world.lossy or is_flooded:
            self.is_uncertain = False
            # Queries are not looked up after a gap, as clients repeat them; those of this client do not.
            for node in world.nodes:
                node.await_ready()
        if world.clock:
            world.clock.step(0)
        self.await_all()
        self.notify()
        self.await_all()
        self.check_filters()
        for one in self.clients:
            one.unregister()
        network.stop()
        self.check_end(world)

    def check_counted(self, world):
        """The database's figures agree with what is registered."""
        store = json.loads(world.admin("registrations", "stats", "--json"))
        for name, kind in (("apn", "apn"), ("firebase", "firebase"), ("webPush", "webpush")):
            count = sum(device.kind == kind for device in self.devices) if self.row["client"] in ("remembered", "one-shot", "light", "recorded") else 0
            if store[name] != count:
                raise Failed(f"{name} is {store[name]} with {count} devices registered")
        if self.row["client"] == "v0.1" and store["v01Devices"] != len(self.devices):
            raise Failed(f"v01Devices is {store['v01Devices']} with {len(self.devices)} devices registered")

    def check_waiting(self, world):
        """The endpoints are away: notifications wait for them, and none was delivered."""
        until("a notification that waits", lambda: json.loads(world.admin("registrations", "stats", "--json")).get("waiting", 0) > 0)
        for device in self.devices:
            if device.delivered:
                raise Failed(f"a device of {device.kind} was notified by an endpoint that is away")

    def notify(self):
        """Each device, once. While its endpoint does not work, the node says so and goes on trying."""
        for one in self.clients:
            code = one.notify("family", allowed=(0, *NOT_YET))
            is_known = not self.is_uncertain or code == 0 and not (isinstance(one, Session) and self.world.disk)
            (self.expected if is_known else self.possible)[one.device] += 1

    def await_all(self):
        for device, count in self.expected.items():
            until(f"{count} notifications of a device of {device.kind}, not {len(set(device.delivered))}",
                  lambda device=device, count=count: len(set(device.delivered)) >= count, 90)

    def check_filters(self):
        for one in self.clients:
            if one.mutes:
                one.notify("work", allowed=(0, *NOT_YET))
        for one in self.clients:
            one.notify("family", allowed=(0, *NOT_YET))
            self.expected[one.device] += 1
        self.await_all()

    def check_end(self, world):
        for device, count in self.expected.items():
            ids = device.delivered
            if not count <= len(set(ids)) <= count + self.possible[device]:
                raise Failed(f"a device of {device.kind} got {len(set(ids))} notifications instead of {count}, or {self.possible[device]} more")
            if len(ids) != len(set(ids)) and REPEATS.isdisjoint(self.row.values()):
                raise Failed(f"a device of {device.kind} got {len(ids)} posts for {count} notifications")
        store = json.loads(world.admin("registrations", "stats", "--json"))
        for name in ("apn", "firebase", "webPush", "waiting", "v01Devices"):
            if store.get(name, 0) != 0:
                raise Failed(f"{name} is {store[name]} after the end")
        secrets = [text for device in self.devices for text in device.secrets] + [(world.folder / "node.key").read_text().strip()]
        for node in world.nodes:
            pages = [get(f"http://127.0.0.1:{node.http}{path}") for path in ("/metrics", "/", "/status.json")]
            if any(status != 200 for status, _ in pages):
                raise Failed(f"{node.name} answers {[status for status, _ in pages]}")
            texts = [body.decode() for _, body in pages] + [node.log.read_text()]
            if any(secret in text for secret in secrets for text in texts):
                raise Failed(f"a secret is in a log or on a page of {node.name}")
            errors = [line for line in texts[-1].splitlines() if (" error " in line or " critical " in line)
                      and not (world.clock and "clock offset too large" in line)
                      # It says why.
                      and not (self.row["adversity"].startswith("endpoint") and "failed to post notifications" in line)]
            if errors and self.row["life"] not in ("database restart", "failover", "pause") and not world.disk:
                raise Failed(f"{node.name} logged {errors[:3]}")
        for node in world.nodes:
            node.stop()
