"""The axes of the journeys, which combinations of them exist, and tables that cover all pairs of values."""

import itertools
import random

AXES = {
    # How the node is connected to the network: a Waku node's REST API, gossip with another waku-push or with py-libp2p, or the network in its own
    # process.
    "network": ["rest", "gossip", "py-libp2p", "inside"],
    # How clients are; those of Session use HTTP instead.
    "clients over": ["rest", "gossip"],
    "store": ["sqlite", "postgresql", "postgresql with standby"],
    "nodes": [1, 3],
    # Beside Status' deployed protocol.
    "protocols": ["status", "v0.1", "session", "all"],
    # light: --attach filter, at a node of py-libp2p. recorded: messages that status-go's client once published.
    "client": ["remembered", "one-shot", "light", "recorded", "v0.1", "session", "session by onion"],
    "endpoint": ["gorush", "gorush 2019", "two gorush", "web push", "gorush and web push"],
    "life": ["none", "restart", "kill", "migrate", "backup", "export", "rotate", "drain", "reload", "database restart", "failover", "pause"],
    "adversity": ["none", "endpoint away", "endpoint refuses", "endpoint slow", "junk", "replay", "lossy relay", "full disk", "clock step"],
}

# Pairs of values that the product, or a journey, does not have.
EXCLUDED = [
    ({"nodes": [3]}, {"store": ["sqlite"], "network": ["inside"]}),
    # Journeys publish and read by a REST API.
    ({"network": ["py-libp2p"]}, {"clients over": ["rest"], "adversity": ["junk", "replay"], "client": ["recorded"]}),
    # Nothing lies between the node and its network.
    ({"network": ["inside"]}, {"adversity": ["lossy relay"]}),
    # The filter node joins a node that does not restart; py-libp2p does not keep up with hundreds of messages a second.
    ({"client": ["light"]}, {"clients over": ["rest"], "network": ["inside"], "adversity": ["junk", "replay"]}),
    ({"client": ["recorded"]}, {"clients over": ["gossip"], "endpoint": ["web push"]}),
    # Version 0.1 has no such devices.
    ({"client": ["v0.1"]}, {"endpoint": ["web push"], "protocols": ["status", "session"]}),
    ({"client": ["session", "session by onion"]}, {"protocols": ["status", "v0.1"]}),
    ({"life": ["database restart"]}, {"store": ["sqlite"]}),
    ({"life": ["failover"]}, {"store": ["sqlite", "postgresql"]}),
    ({"life": ["pause"]}, {"nodes": [1]}),
    # The disk is that of the node's data folder.
    ({"adversity": ["full disk"]}, {"store": ["postgresql", "postgresql with standby"]}),
]


def excluded_values():
    """For each value, all values of other axes with which it does not occur."""
    found = {(name, value): set() for name, values in AXES.items() for value in values}
    for some, others in EXCLUDED:
        for first in ((name, value) for name in some for value in some[name]):
            for second in ((name, value) for name in others for value in others[name]):
                found[first].add(second)
                found[second].add(first)
    return found


CONFLICTS = excluded_values()


def exists(row):
    """Whether the product has this combination; it may lack axes."""
    return all(CONFLICTS[one].isdisjoint(row.items()) for one in row.items())


def completed(row, chance=None):
    """A row with these values that exists, drawn at random if a source is given; None if there is none."""
    if not exists(row):
        return None
    left = [name for name in AXES if name not in row]
    if not left:
        return row
    # The axis with the fewest possible values is decided first.
    possible = {name: [value for value in AXES[name] if CONFLICTS[name, value].isdisjoint(row.items())] for name in left}
    if chance:
        chance.shuffle(left)
    name = min(left, key=lambda name: len(possible[name]))
    if chance:
        chance.shuffle(possible[name])
    return next(filter(None, (completed({**row, name: value}, chance) for value in possible[name])), None)


def parts(row, chosen):
    return [tuple((name, row[name]) for name in some) for some in chosen]


def rows(strength=2, seed=0):
    """A table in which each combination of `strength` values that exists occurs, as a list of rows. The same for the same arguments."""
    chance = random.Random(seed)
    chosen = list(itertools.combinations(AXES, strength))
    every = [part for some in chosen for part in itertools.product(*([(name, value) for value in AXES[name]] for name in some))]
    order = [part for part in every if completed(dict(part))]
    missing, table = set(order), []
    chance.shuffle(order)
    for wanted in order:
        if wanted not in missing:
            continue
        best, gain = None, set()
        for _ in range(60):
            row = completed(dict(wanted), chance)
            covered = missing.intersection(parts(row, chosen))
            if len(covered) > len(gain):
                best, gain = row, covered
        table.append({name: best[name] for name in AXES})
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
