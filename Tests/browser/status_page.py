#!/usr/bin/env python3
"""The status page in Chromium, on real nodes: an empty start, one node, three nodes, an outage of gorush and a flood, each wide and narrow, light and dark.

    Tests/browser/status_page.py --binary .build/debug/waku-push [--pictures FOLDER] [--only SCENE,...]

Checks that a glance tells the state: its title, its color, the remedy or article, and that nothing is cut off at the side. Pictures are for reviewers:
look at them after each change of the page. Three nodes need Debian's postgresql. Without Chromium it prints a line and exits with 0.
"""

import argparse
import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "journeys"))

from clients import Device, Status  # noqa: E402
from journey import PUBSUB, Network, World  # noqa: E402
from parts import Failed, end, get, until  # noqa: E402

LOOKS = [(f"{width}-{scheme}", width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
ROW = {"network": "rest", "clients over": "rest", "store": "sqlite", "nodes": 1, "protocols": "status", "client": "one-shot", "endpoint": "gorush"}


class Chromium:
    """A headless Chromium with one page, by the DevTools protocol over a pipe: JSON that ends with a zero byte."""

    def __init__(self, program, folder):
        pipes = os.pipe(), os.pipe()
        # Beyond 3 and 4, by which Chromium has them.
        (theirs, self.commands), (self.answers, ours) = ([fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 10) for one in pipe] for pipe in pipes)
        for one in (*pipes[0], *pipes[1]):
            os.close(one)
        # Its sandbox does not work in all test environments, and it loads only the page of the node.
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
                   "--remote-debugging-pipe", f"--user-data-dir={folder}/profile", "about:blank"]

        def connect():
            os.dup2(theirs, 3)
            os.dup2(ours, 4)
        self.process = subprocess.Popen([program, *options], preexec_fn=connect, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": str(folder)})
        os.close(theirs)
        os.close(ours)
        self.number, self.session, self.rest = 0, None, b""
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                data = os.read(self.answers, 1 << 20)
                if not data:
                    raise Failed("Chromium ended")
                self.rest += data
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "result" not in answer:
                    raise Failed(f"{method}: {answer}")
                return answer["result"]

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, url, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=url)
        until("the page is updated by its script", lambda: self.value("Number(document.body?.dataset.updates || 0) > 0"))

    def picture(self):
        size = self.value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def end(self):
        end(self.process)
        os.close(self.commands)
        os.close(self.answers)


class Scene:
    """A world, and what happens in it before the page is looked at. `title` and `color` are what the page must show then."""

    title, color, row = "Healthy", "good", {}

    def prepare(self, world):
        pass

    def register(self, world, count=3):
        self.clients = [Status(world, Device(world, f"phone{number}", ["apn", "firebase"][number % 2]), False) for number in range(count)]
        for one in self.clients:
            one.register()

    def notify(self, rounds=3):
        for _ in range(rounds):
            for one in self.clients:
                one.notify("family", allowed=(0, 65, 69))


class Empty(Scene):
    pass


class One(Scene):
    def prepare(self, world):
        self.register(world)
        network = Network(world, "junk")
        self.notify()
        network.stopping.set()


class Outage(Scene):
    title, color = "Not ready", "bad"

    def prepare(self, world):
        self.register(world)
        self.notify(1)
        for endpoint in world.endpoints:
            endpoint.set("refuses")
        self.notify(2)
        until("the node is not ready", lambda: get(f"http://127.0.0.1:{world.nodes[0].http}/readyz")[0] == 503)


class Flood(Scene):
    """A sender repeats its messages."""

    title, color = "Working, with warnings", "warn"

    def prepare(self, world):
        self.register(world)
        network = Network(world, "none")
        network.url = f"http://127.0.0.1:{world.hub.rest}"
        messages = network.stored()

        def flooded():
            for message in messages:
                for _ in range(100):
                    network.publish(message["contentTopic"], message["payload"])
            status = json.loads(get(f"http://127.0.0.1:{world.nodes[0].http}/status.json")[1])
            return any(alarm["kind"] == "under_attack" for alarm in status["alarms"])
        until("the alarm under_attack", flooded, 120)
        self.notify(1)


class Three(Scene):
    row = {"store": "postgresql", "nodes": 3}

    def prepare(self, world):
        self.register(world)
        self.notify()
        world.nodes[2].kill()
        url = f"http://127.0.0.1:{world.nodes[0].http}/status.json"
        until("the failover", lambda: json.loads(get(url)[1])["cluster"].get("lastFailover"))
        self.notify(1)


SCENES = {"empty": Empty, "one": One, "outage": Outage, "flood": Flood, "three": Three}


def look(name, scene, chosen, chromium, folder):
    world = World(chosen.binary, ROW | scene.row, folder)
    try:
        world.start()
        scene.prepare(world)
        url = f"http://127.0.0.1:{world.nodes[0].http}/"
        for look, width, scheme in LOOKS:
            chromium.open(url, width, scheme)
            health = "document.querySelector('[data-live=health]')"
            title, color, text = (chromium.value(f"{health}.{part}") for part in ("querySelector('h2').textContent", "className", "textContent"))
            if title != scene.title or scene.color not in color.split():
                raise Failed(f"the page says {title} ({color}) instead of {scene.title}: {text}")
            if scene.color != "good" and "remedy" not in text and not chromium.value(f"{health}.querySelector('li span')?.textContent"):
                raise Failed(f"the page does not say what to do: {text}")
            if chromium.value("document.documentElement.scrollWidth") > width:
                raise Failed(f"the page is wider than {width} pixels")
            if chosen.pictures:
                (chosen.pictures / f"{name}-{look}.png").write_bytes(chromium.picture())
        print(f"ok: {name}: {scene.title}")
    finally:
        world.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="saves a picture of each look")
    parser.add_argument("--only", default=",".join(SCENES))
    parser.add_argument("--chromium", default="chromium")
    chosen = parser.parse_args()
    program = shutil.which(chosen.chromium)
    if not program:
        return print(f"{chosen.chromium} is not installed: the page was not looked at (apt-get install chromium)")
    if chosen.pictures:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
    for name in chosen.only.split(","):
        with tempfile.TemporaryDirectory(prefix="waku-push-page-", ignore_cleanup_errors=True) as folder:
            chromium = Chromium(program, folder)
            try:
                look(name, SCENES[name](), chosen, chromium, Path(folder))
            except Failed as error:
                sys.exit(f"{name}: {error}")
            finally:
                chromium.end()


if __name__ == "__main__":
    main()
