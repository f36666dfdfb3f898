"""A storage server's client on pyzmq's DEALER with CURVE, and Session's cryptography by PyNaCl: the other side of Tests/Session/SessionStandInsTests.

    session_client.py <file of commands>

Commands, a line each, are appended to the file; each is answered by a line:

    monitor PORT KEY SEED SIG_TS     asks a storage server to monitor the account of an Ed25519 seed: `monitored REPLY`, hex
    report                           waits for the next notify.message: `reported HEX`
    subscription HEX                 the body of POST /subscribe: `subscription ok`, or why its signature is not valid
    onion SECRET HEX                 opens a request with the server's X25519 secret: `onion HEAD BODY`, hex, and seals an answer of
                                     code 201 with the body in reverse: `answer HEX`
    payload KEY ACCOUNT HASH DATA    makes an enc_payload: `payload BASE64`
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time

import nacl.bindings as sodium
import nacl.exceptions
import zmq
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from zmq.utils import z85

dealer = zmq.Context().socket(zmq.DEALER)


def say(*words):
    print(*words, flush=True)


def string(data):
    return b"%d:" % len(data) + data


def monitor(port, key, seed, sig_ts):
    dealer.curve_publickey, dealer.curve_secretkey = zmq.curve_keypair()
    dealer.curve_serverkey = z85.encode(bytes.fromhex(key))
    dealer.connect(f"tcp://127.0.0.1:{port}")
    dealer.send_multipart([b"HI"])
    if dealer.recv_multipart() != [b"HELLO"]:
        return say("monitored", "no HELLO")
    public, secret = sodium.crypto_sign_seed_keypair(bytes.fromhex(seed))
    account = b"\5" + sodium.crypto_sign_ed25519_pk_to_curve25519(public)
    signature = sodium.crypto_sign(f"MONITOR{account.hex()}{sig_ts}10".encode(), secret)[:64]
    entry = b"d1:P" + string(public) + b"1:di1e1:nli0ee1:s" + string(signature) + b"1:ti" + sig_ts.encode() + b"ee"
    dealer.send_multipart([b"monitor.messages", b"tag", entry])
    word, tag, reply = dealer.recv_multipart()
    say("monitored", reply.hex() if (word, tag) == (b"REPLY", b"tag") else "no reply")


def report():
    word, message = dealer.recv_multipart()
    say("reported", message.hex() if word == b"notify.message" else word)


def subscription(body):
    fields = json.loads(bytes.fromhex(body))
    spaces = ",".join(map(str, fields["namespaces"]))
    text = f"MONITOR{fields['pubkey']}{fields['sig_ts']}{int(fields['data'])}{spaces}".encode()
    account = bytes.fromhex(fields["pubkey"])
    signer = bytes.fromhex(fields["session_ed25519"]) if account[0] == 5 else account[1:]
    if account[0] == 5 and sodium.crypto_sign_ed25519_pk_to_curve25519(signer) != account[1:]:
        return say("subscription", "wrong-key")
    try:
        sodium.crypto_sign_open(bytes.fromhex(fields["signature"]) + text, signer)
    except nacl.exceptions.BadSignatureError:
        return say("subscription", "not-signed")
    whole = len(bytes.fromhex(fields["enc_key"])) == 32 and fields["service"] == "firebase" and fields["service_info"]["token"]
    say("subscription", "ok" if whole else "incomplete")


def onion(secret, request):
    secret, request = bytes.fromhex(secret), bytes.fromhex(request)
    length = int.from_bytes(request[:4], "little")
    sealed, parameters = request[4:4 + length], json.loads(request[4 + length:])
    public, client = sodium.crypto_scalarmult_base(secret), bytes.fromhex(parameters["ephemeral_key"])
    shared = sodium.crypto_scalarmult(secret, client)
    if parameters["enc_type"].startswith("xchacha20"):
        key = hashlib.blake2b(shared + client + public, digest_size=32).digest()
        plain = sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[24:], None, sealed[:24], key)
    else:
        key = hmac.digest(b"LOKI", shared, "sha256")
        plain = AESGCM(key).decrypt(sealed[:12], sealed[12:], None)
    head, rest = unstring(plain[1:])
    body, rest = unstring(rest)
    say("onion", head.hex(), body.hex(), "whole" if plain[:1] == b"l" and rest == b"e" else "odd")
    answer = b"l" + string(b'{"code":201,"headers":{}}') + string(body[::-1]) + b"e"
    if parameters["enc_type"].startswith("xchacha20"):
        nonce = os.urandom(24)
        answer = nonce + sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(answer, None, nonce, key)
    else:
        nonce = os.urandom(12)
        answer = nonce + AESGCM(key).encrypt(nonce, answer, None)
    say("answer", answer.hex())


def unstring(data):
    colon = data.index(b":")
    end = colon + 1 + int(data[:colon])
    return data[colon + 1:end], data[end:]


def payload(key, account, digest, data):
    data = bytes.fromhex(data)
    metadata = {"@": account, "#": digest, "n": -3, "t": 1000, "z": 2000, "l": len(data)}
    plain = b"l" + string(json.dumps(metadata).encode()) + string(data) + b"e"
    plain += bytes(-len(plain) % 256)
    nonce = os.urandom(24)
    sealed = nonce + sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, None, nonce, bytes.fromhex(key))
    say("payload", base64.b64encode(sealed).decode())


say("ready")
with open(sys.argv[1]) as file:
    line = ""
    while True:
        line += file.readline()
        if line.endswith("\n"):
            name, *rest = line.split()
            globals()[name](*rest)
            line = ""
        else:
            time.sleep(0.005)
