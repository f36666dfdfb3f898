"""Clients of each kind: register a device, notify it, end its registration."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import time
import uuid
from pathlib import Path

from parts import Failed, post, post_bytes, until

VECTORS = json.loads((Path(__file__).resolve().parents[1] / "TestSupport/Vectors/status-go.json").read_text())

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


class Recorded:
    """status-go's client: messages that it once published to a server whose key the node has, from Tests/TestSupport/Vectors. Each is published again
    as it was, in a new Waku message, until there is an answer."""

    mutes = True
    FLOWS = {flow["name"]: flow for flow in VECTORS["flows"]}
    # Each can be handled only once, because its id is the same each time.
    NOTIFYING = ["client_send_message", "req_message_apn", "req_message_with_payload", "req_mention_allowed", "req_join_community", "req_type_7",
                 "req_gorush_500"]
    TOKEN = "apn-device-token-1b"

    def __init__(self, world, device):
        self.world, self.device, self.left = world, device, iter(self.NOTIFYING)
        self.keys = {key["public_key"]: key["private_key"] for key in VECTORS["keys"]}

    def answers(self, topic, key):
        """Contents of messages to this key, by their payloads."""
        found = {}
        for message in self.world.stored(topic):
            with contextlib.suppress(ValueError):
                found[message["payload"]] = opened(base64.b64decode(message["payload"]), key)
        return found

    def ask(self, name, allowed=(0,)):
        """Publishes a recorded message. Returns 0 if it was answered with success, else an exit code of waku-push client."""
        flow = self.FLOWS[name]
        message, answer = flow["wire_in"][0], flow["wire_out"][0]
        key = self.keys[answer["encryption"]["recipient_public_key"]]
        before = self.answers(answer["content_topic"], key).keys()
        payload = base64.b64encode(bytes.fromhex(message["waku_message"]["payload"])).decode()

        def answers():
            """Publishes it, and waits for 5 s."""
            self.world.publish(message["content_topic"], payload)
            with contextlib.suppress(Failed):
                return until("an answer", lambda: [content for answered, content in self.answers(answer["content_topic"], key).items()
                                                   if answered not in before], 5)
        try:
            answers = until(f"an answer to {name}", answers, 15)
        except Failed:
            if 69 not in allowed:
                raise
            return 69
        # Of the recorded answer the payload within the signed envelope is the same.
        if not any(bytes.fromhex(answer["application_metadata"]["payload"]) in one for one in answers):
            if 65 not in allowed:
                raise Failed(f"{name} was not answered as by status-go: {[one.hex() for one in answers]}")
            return 65
        return 0

    def register(self):
        for name in ("register_apn", "register_update_lists"):
            self.ask(name)

    def notify(self, chat, allowed):
        return self.ask("req_muted_chat" if chat == "work" else next(self.left), allowed)

    def unregister(self):
        self.ask("unregister")


def opened(payload, key):
    """The content of an asymmetric payload of Waku, version 1. Raises ValueError if it is not for this key."""
    import coincurve
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    point, vector, sealed, tag = payload[:65], payload[65:81], payload[81:-32], payload[-32:]
    shared = coincurve.PublicKey(point).multiply(bytes.fromhex(key)).format()[1:33]
    derived = hashlib.sha256(b"\0\0\0\1" + shared).digest()
    if not hmac.compare_digest(tag, hmac.digest(hashlib.sha256(derived[16:]).digest(), vector + sealed, "sha256")):
        raise ValueError("for another key")
    return Cipher(algorithms.AES(derived[:16]), modes.CTR(vector)).decryptor().update(sealed)


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

    def __init__(self, world, device, by_onion):
        import nacl.bindings as sodium

        self.world, self.device, self.by_onion = world, device, by_onion
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
        send = self.post_by_onion if self.by_onion else lambda path, content: post(f"{self.world.session_url()}{path}", content)
        status, body = send(path, content)
        if status != 200 or not json.loads(body).get("success"):
            raise Failed(f"{path} was answered {status} {body.decode()}")

    def post_by_onion(self, path, content):
        """As the last node of an onion path sends it, encrypted to the node's key. Returns status and body from the answer within."""
        sodium = self.sodium
        server = bytes.fromhex(self.world.command.output("session", "key", "show", "--key", "onion.key").split()[-1])
        head = {"method": "POST", "endpoint": path, "headers": {"Content-Type": "application/json"}}
        texts = [json.dumps(head).encode(), json.dumps(content).encode()]
        plain = b"l" + b"".join(b"%d:%s" % (len(text), text) for text in texts) + b"e"
        secret, nonce = os.urandom(32), os.urandom(24)
        public = sodium.crypto_scalarmult_base(secret)
        key = hashlib.blake2b(sodium.crypto_scalarmult(secret, server) + public + server, digest_size=32).digest()
        sealed = nonce + sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, None, nonce, key)
        body = len(sealed).to_bytes(4, "little") + sealed + json.dumps({"ephemeral_key": public.hex(), "enc_type": "xchacha20"}).encode()
        status, answer = post_bytes(f"{self.world.session_url()}/oxen/v4/lsrpc", body)
        if status != 200:
            return status, answer
        answer = sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(answer[24:], None, answer[:24], key)
        # A list of two strings: status and headers, and the body.
        size, rest = answer[1:].split(b":", 1)
        head, rest = json.loads(rest[:int(size)]), rest[int(size):]
        size, rest = rest.split(b":", 1)
        return head["code"], rest[:int(size)]

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
