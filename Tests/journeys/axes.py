"""The axes of the journeys, which combinations of them exist, and tables that cover all pairs of values."""

import itertools
import random

AXES = {
    # How the node is connected to the network: a Waku node's REST API, gossip with another waku-push or with py-libp2p, or the network in its own
    # process. Filter is not among them: no filter node can be installed here.
    "network": ["rest", "gossip", "py-libp2p", "inside"],
    # How clients are; those of Session use HTTP instead.
    "clients over": ["rest", "gossip"],
    "store": ["sqlite", "postgresql"],
    "nodes": [1, 3],
    # Beside Status' deployed protocol.
    "protocols": ["status", "v0.1", "session", "all"],
    "client": ["remembered", "one-shot", "v0.1", "session"],
    "endpoint": ["gorush", "two gorush", "web push", "gorush and web push"],
    "life": ["none", "restart", "kill", "migrate", "backup", "export", "rotate", "drain", "reload", "database restart", "pause"],
    "adversity": ["none", "endpoint away", "endpoint refuses", "endpoint slow", "junk", "replay"],
}


def exists(row):
    """Whether the product has this combination."""
    if row["nodes"] == 3 and (row["store"] == "sqlite" or row["network"] == "inside"):
        return False
    if row["network"] == "py-libp2p" and (row["clients over"] == "rest" or row["adversity"] in ("junk", "replay")):
        return False
    if row["life"] == "database restart" and row["store"] == "sqlite":
        return False
    if row["life"] == "pause" and row["nodes"] == 1:
        return False
    if row["client"] in ("v0.1", "session") and row["protocols"] not in (row["client"], "all"):
        return False
    if row["client"] == "v0.1" and row["endpoint"] == "web push":  # version 0.1 has no such devices
        return False
    return True


def parts(row, chosen):
    return [frozenset((name, row[name]) for name in some) for some in chosen]


def rows(strength=2, seed=0):
    """A table in which each combination of `strength` values that exists occurs, as a list of rows. The same for the same arguments."""
    chance = random.Random(seed)
    names = list(AXES)
    everything = [row for values in itertools.product(*AXES.values()) if exists(row := dict(zip(names, values)))]
    chosen = list(itertools.combinations(names, strength))
    missing = {part for row in everything for part in parts(row, chosen)}
    table = []
    for wanted in sorted(missing, key=lambda part: sorted(map(str, part))):
        if wanted not in missing:
            continue
        fitting = [row for row in everything if wanted <= row.items()]
        best, gain = None, frozenset()
        for row in chance.sample(fitting, min(len(fitting), 60)):
            covered = missing.intersection(parts(row, chosen))
            if len(covered) > len(gain):
                best, gain = row, covered
        table.append(best)
        missing -= gain
    return table


def written(row):
    """As --row takes it."""
    return ",".join(f"{name}={value}" for name, value in row.items())


def read(text):
    """A row from its text; values that are not given are the first of their axes. Raises ValueError."""
    row = {name: values[0] for name, values in AXES.items()}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        found = [one for one in AXES.get(name, []) if str(one) == value]
        if not found:
            raise ValueError(f"no such value: {part}")
        row[name] = found[0]
    if not exists(row):
        raise ValueError("this combination does not exist")
    return row
