"""Web Push as others implement it: http-ece, py-vapid and pywebpush. Reads a JSON object from standard input, prints one.

open: http-ece decrypts a body. verify: py-vapid checks an Authorization header. sign: py-vapid makes one. seal: pywebpush encrypts a content.
"""
import base64
import json
import sys

import http_ece
import py_vapid
from cryptography.hazmat.primitives.asymmetric import ec
from pywebpush import WebPusher


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


question = json.load(sys.stdin)
answer = {}
if "open" in question:
    asked = question["open"]
    key = ec.derive_private_key(int.from_bytes(decode(asked["key"]), "big"), ec.SECP256R1())
    plain = http_ece.decrypt(decode(asked["body"]), private_key=key, auth_secret=decode(asked["auth"]), version="aes128gcm")
    answer["open"] = encode(plain)
if "verify" in question:
    # RFC 9110 allows the space after the comma, and RFC 8292 writes it; py-vapid splits at the comma alone.
    answer["verify"] = bool(py_vapid.Vapid02.verify(question["verify"].replace(", ", ",")))
    token = question["verify"].split("t=")[1].split(",")[0]
    answer["claims"] = json.loads(decode(token.split(".")[1]))
if "sign" in question:
    asked = question["sign"]
    claims = {name: asked[name] for name in ("aud", "exp", "sub")}
    answer["sign"] = py_vapid.Vapid02.from_raw(asked["key"].encode()).sign(claims)["Authorization"]
if "seal" in question:
    asked = question["seal"]
    pusher = WebPusher({"endpoint": asked["endpoint"], "keys": asked["keys"]})
    answer["seal"] = encode(pusher.encode(decode(asked["content"]), content_encoding="aes128gcm")["body"])
print(json.dumps(answer))
