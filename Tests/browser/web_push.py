#!/usr/bin/env python3
"""Web Push to a real browser: Firefox subscribes with the node's VAPID key, the node notifies, and the service worker decrypts and shows it.

    Tests/browser/web_push.py --binary .build/debug/waku-push [--firefox firefox-esr]

Firefox runs headless with a new profile. Its push service is a stand-in that speaks the WebSocket protocol of Mozilla's autopush to the browser and
Web Push (RFC 8030) to the node, all on 127.0.0.1. Needs requirements.txt. Without Firefox it prints a line and exits with 0.
"""

import argparse
import asyncio
import base64
import contextlib
import functools
import hashlib
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "journeys"))

from parts import Command, Failed, certificate, end, free_port, get, until  # noqa: E402

WAIT = 60  # seconds, for each step
PAGE = {
    "/": ("text/html", "<!doctype html><title>Subscriber</title>"),
    "/worker.js": ("text/javascript", """
        self.addEventListener("push", event => {
            const content = event.data.json();
            event.waitUntil(self.registration.showNotification(content.type, {tag: content.id, data: content}));
        });
        self.addEventListener("activate", event => event.waitUntil(self.clients.claim()));
    """),
}
SUBSCRIBE = """
    const [key, done] = arguments;
    (async () => {
        const registration = await navigator.serviceWorker.register("/worker.js");
        await navigator.serviceWorker.ready;
        const subscription = await registration.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key});
        return JSON.stringify(subscription);
    })().then(done, error => done("error: " + error));
"""
SHOWN = """
    const [done] = arguments;
    navigator.serviceWorker.ready
        .then(registration => registration.getNotifications())
        .then(all => done(JSON.stringify(all.map(one => ({title: one.title, data: one.data})))), error => done("error: " + error));
"""


def compressed(public_key):
    point = bytes.fromhex(public_key.removeprefix("0x"))
    return bytes([2 + point[-1] % 2]) + point[1:33]


class PushService:
    """Autopush's WebSocket protocol for one browser, and Web Push over TLS for the node."""

    def __init__(self, folder):
        self.keys, self.posted, self.acknowledged = {}, [], []
        self.browser = None
        self.loop = asyncio.new_event_loop()
        self.certificate, key = certificate(folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(PushHandler, self))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.origin = f"https://127.0.0.1:{self.server.server_address[1]}"
        ready = threading.Event()
        threading.Thread(target=self.serve_browser, args=(ready,), daemon=True).start()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        ready.wait(WAIT)

    def serve_browser(self, ready):
        import websockets

        async def serve():
            async with websockets.serve(self.talk, "127.0.0.1", 0, subprotocols=["push-notification"]) as server:
                self.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
                ready.set()
                await asyncio.Future()

        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(serve())

    async def talk(self, browser):
        self.browser = browser
        async for text in self.messages(browser):
            message = json.loads(text)
            kind = message.get("messageType")
            if kind == "hello":
                reply = {"messageType": "hello", "uaid": message.get("uaid") or uuid.uuid4().hex, "status": 200,
                         "use_webpush": True, "broadcasts": {}}
            elif kind == "register":
                channel = message["channelID"]
                self.keys[channel] = message.get("key")
                reply = {"messageType": "register", "channelID": channel, "status": 200,
                         "pushEndpoint": f"{self.origin}/wpush/{channel}"}
            elif kind == "unregister":
                reply = {"messageType": "unregister", "channelID": message["channelID"], "status": 200}
            elif kind == "ack":
                self.acknowledged += message["updates"]
                continue
            elif not message:  # a ping
                reply = {}
            else:
                continue
            await browser.send(json.dumps(reply))

    async def messages(self, browser):
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):  # the browser ends without a closing frame
            async for text in browser:
                yield text

    def deliver(self, channel, body, encoding):
        """Called in a thread of the HTTP server."""
        message = {"messageType": "notification", "channelID": channel, "version": uuid.uuid4().hex,
                   "data": base64.urlsafe_b64encode(body).rstrip(b"=").decode(), "headers": {"encoding": encoding}}
        asyncio.run_coroutine_threadsafe(self.browser.send(json.dumps(message)), self.loop).result(WAIT)


class PushHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, service, *arguments):
        self.service = service
        super().__init__(*arguments)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        channel = self.path.rsplit("/", 1)[-1]
        key = self.service.keys.get(channel)
        # A subscription that was made with a VAPID key takes messages of this key only.
        allowed = key is not None and f"k={key.rstrip('=')}" in self.headers.get("Authorization", "")
        if allowed:
            self.service.deliver(channel, body, self.headers["Content-Encoding"])
            self.service.posted.append(len(body))
        self.send_response(201 if allowed else 404 if key is None else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


class PageHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, text = PAGE.get(self.path, ("text/plain", None))
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def running(arguments, log, **options):
    with open(log, "ab") as output:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **options)
    try:
        yield process
    finally:
        end(process)


class Node(Command):
    """A daemon with a Waku network of its own, without gorush, and the commands of the client."""

    def __init__(self, binary, folder):
        super().__init__(binary, folder)
        self.relay, self.http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.run("identity", "new", "--out", "node.key")
        self.run("identity", "new", "--out", "recipient.key")
        self.run("identity", "new-vapid", "--out", "vapid.key")
        self.key = self.output("identity", "show", "--public-key", "--identity", "node.key")
        self.recipient = self.output("identity", "show", "--public-key", "--identity", "recipient.key")
        # Requests name the recipient by this hash.
        self.recipient_hash = hashlib.shake_256(compressed(self.recipient)).hexdigest(64)

    def client(self, *arguments):
        return self.run("client", *arguments, "--relay", f"http://{self.relay}")

    def serve(self, authorities):
        arguments = [self.binary, "serve", "--identity", "node.key", "--data", "data", "--gorush", "none", "--web-push",
                     "--web-push-key", "vapid.key", "--web-push-contact", "mailto:operator@example.org", "--web-push-allow", "127.0.0.1",
                     "--web-push-ca", str(authorities), "--loopback-listen", self.relay, "--listen", "off", "--http", self.http]
        return running(arguments, self.folder / "node.log", cwd=self.folder, env=self.environment)

    def get(self, path):
        return get(f"http://{self.http}{path}")


@contextlib.contextmanager
def browser(firefox, folder, push_service):
    """A Marionette session of a headless Firefox."""
    from marionette_driver.marionette import Marionette

    profile = folder / "profile"
    profile.mkdir()
    port = free_port()
    preferences = {
        # Those that Marionette recommends switch the push service off.
        "marionette.port": port, "remote.prefs.recommended": False, "dom.push.serverURL": push_service,
        "dom.push.testing.allowInsecureServerURL": True,
        "permissions.default.desktop-notification": 1, "alerts.useSystemBackend": False,
        "browser.shell.checkDefaultBrowser": False,
        "datareporting.policy.dataSubmissionEnabled": False, "app.update.enabled": False, "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False, "services.settings.server": "http://127.0.0.1:9/v1",
    }
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in preferences.items())
    (profile / "user.js").write_text("\n".join(lines) + "\n")
    arguments = [firefox, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    environment = os.environ | {"HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1"}
    with running(arguments, folder / "firefox.log", env=environment):
        session = Marionette(host="127.0.0.1", port=port)
        session.raise_for_port(timeout=WAIT)
        session.start_session()
        session.timeout.script = WAIT
        try:
            yield session
        finally:
            with contextlib.suppress(Exception):
                session.delete_session()


def answer(text):
    if text.startswith("error: "):
        sys.exit(f"the browser says: {text}")
    return json.loads(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--firefox", default="firefox-esr")
    chosen = parser.parse_args()
    if not shutil.which(chosen.firefox):
        print(f"{chosen.firefox} is not installed: Web Push is not tested with a browser")
        return

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waku-push-browser-", ignore_cleanup_errors=True)))
        service = PushService(folder)
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        node = Node(chosen.binary, folder)
        stack.enter_context(node.serve(service.certificate))
        until("the node is ready", lambda: node.get("/readyz")[0] == 200)
        vapid = json.loads(node.get("/web-push")[1])["key"]

        session = stack.enter_context(browser(chosen.firefox, folder, service.url))
        session.navigate(f"http://127.0.0.1:{site.server_address[1]}/")
        subscription = answer(session.execute_async_script(SUBSCRIBE, script_args=[vapid]))
        print(f"subscribed by {session.session_capabilities['browserName']} {session.session_capabilities['browserVersion']}")
        # As JSON.stringify made it: the browser's own form.
        (folder / "subscription.json").write_text(json.dumps(subscription))
        node.client("register", "--server", f"{node.key},vapid={vapid}", "--identity", "recipient.key", "--web-push", "subscription.json")

        node.client("notify", "--server", node.key, "--registrant", node.recipient)
        shown = until("the notification is shown", lambda: answer(session.execute_async_script(SHOWN)))
        content = shown[0]["data"]
        expected = {"v": 1, "protocol": "status", "type": "message", "publicKey": "0x" + node.recipient_hash}
        wrong = {name: content.get(name) for name, value in expected.items() if content.get(name) != value}
        if wrong or shown[0]["title"] != "message" or len(shown) != 1:
            sys.exit(f"shown: {json.dumps(shown)}")
        until("the browser acknowledges it as decrypted", lambda: [one for one in service.acknowledged if one.get("code") == 100])
        print(f"notified: {service.posted[0]} bytes were posted, and the service worker shows “{shown[0]['title']}”")


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        sys.exit(str(error))
