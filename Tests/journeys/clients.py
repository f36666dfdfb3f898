"""Clients of each kind: register a device, notify it, end its registration."""

import base64
import json
import os
import secrets
import time
import uuid

from parts import Failed, post, until

# waku-push client: the node said that it could not deliver yet, or not at all.
NOT_YET = (65, 69)


class Device:
    """A device of one recipient: `kind` is apn, firebase or webpush."""

    def __init__(self, world, name, kind):
        self.world, self.name, self.kind = world, name, kind
        self.subscription = world.push_service.subscribe(name) if kind == "webpush" else None
        self.token = name if self.subscription else secrets.token_hex(32)

    @property
    def secrets(self):
        keys = self.subscription["keys"] if self.subscription else {}
        return list(keys.values()) or [self.token]

    @property
    def delivered(self):
        """Ids of its notifications, from all endpoints."""
        return [identifier for endpoint in self.world.endpoints for identifier in endpoint.to(self.token)]


class Status:
    """The deployed protocol. With `remembers` the client has a state folder, else each command stands for itself."""

    mutes = True

    def __init__(self, world, device, remembers):
        self.world, self.device, self.remembers = world, device, remembers
        self.name, self.version, self.installation = device.name, 0, str(uuid.uuid4())
        if not remembers:
            world.command.run("identity", "new", "--out", f"{self.name}.key")
            self.key = world.command.output("identity", "show", "--public-key", "--identity", f"{self.name}.key")

    def who(self, name):
        return ["--state", name] if self.remembers else ["--identity", f"{name}.key"]

    def register(self):
        device, world = self.device, self.world
        if device.subscription:
            (world.folder / f"{self.name}.json").write_text(json.dumps(device.subscription))
            arguments = ["--web-push", f"{self.name}.json", "--server", f"{world.key},vapid={world.vapid}"]
        else:
            arguments = ["--device-token", device.token, "--platform", device.kind, "--server", world.key]
            arguments += ["--apn-topic", "im.status.ethereum"] if device.kind == "apn" else []
        self.version += 1
        if not self.remembers:
            arguments += ["--installation", self.installation, "--version", self.version]
        world.client("register", *self.who(self.name), *arguments, "--mute-chat", "work")
        if self.remembers:
            self.key = world.command.output("client", "status", "--state", self.name, "--public-key")

    def notify(self, chat, allowed):
        if self.remembers:
            return self.world.client("notify", "--state", "sender", "--server", self.world.key, self.key, "--chat", chat, allowed=allowed)
        return self.world.client("notify", "--server", self.world.key, "--registrant", self.key, "--chat", chat, allowed=allowed)

    def unregister(self):
        self.version += 1
        one_shot = ["--server", self.world.key, "--installation", self.installation, "--version", self.version]
        self.world.client("unregister", *self.who(self.name), *([] if self.remembers else one_shot))


class StatusV01:
    mutes = False

    def __init__(self, world, device):
        self.world, self.device, self.name = world, device, device.name

    def register(self):
        self.world.client("v0.1", "register", "--state", self.name, "--server", self.world.key,
                          "--device-token", self.device.token, "--platform", self.device.kind)
        self.key = self.world.command.output("client", "status", "--state", self.name, "--public-key")

    def notify(self, chat, allowed):
        return self.world.client("v0.1", "notify", "--state", "sender", "--server", self.world.key, self.key, "--chat", chat, allowed=allowed)

    def unregister(self):
        self.world.client("v0.1", "unregister", "--state", self.name)


class Session:
    """An account of Session: it subscribes over HTTP, and its swarm's storage server tells the node of a message."""

    mutes = False

    def __init__(self, world, device):
        import nacl.bindings as sodium

        self.world, self.device = world, device
        self.public, self.secret = sodium.crypto_sign_seed_keypair(os.urandom(32))
        self.account = (b"\5" + sodium.crypto_sign_ed25519_pk_to_curve25519(self.public)).hex()
        self.sodium, self.since = sodium, 0

    def post(self, path, text, fields):
        now = int(time.time())
        signature = self.sodium.crypto_sign(text.format(self.account, now).encode(), self.secret)[:64]
        service = {"apn": "apns", "firebase": "firebase", "webpush": "webpush"}[self.device.kind]
        info = {"token": self.device.token}
        if self.device.subscription:
            info = {"endpoint": self.device.subscription["endpoint"], **self.device.subscription["keys"]}
        content = {"pubkey": self.account, "session_ed25519": self.public.hex(), "sig_ts": now, "service": service, "service_info": info,
                   "signature": base64.b64encode(signature).decode(), **fields}
        status, body = post(f"{self.world.session_url()}{path}", content)
        if status != 200 or not json.loads(body).get("success"):
            raise Failed(f"{path} was answered {status} {body.decode()}")

    def register(self):
        self.post("/subscribe", "MONITOR{}{}10", {"namespaces": [0], "data": True, "enc_key": os.urandom(32).hex()})

    def notify(self, chat, allowed):
        """Told once the node monitors the account, which begins anew after a restart."""
        def told():
            return self.world.storage.message(self.account, secrets.token_hex(32))
        until("the account is monitored", told)
        return 0

    def unregister(self):
        self.post("/unsubscribe", "UNSUBSCRIBE{}{}", {})
