import Core
import Foundation
import LibP2P
import SessionProtocol
import WakuCrypto

extension PrivateFile {
    /// Reads a key.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of bytes read.
    ///   - remedy: how to create such a file.
    ///   - problem: the defect of content from which `parse` makes no key, to follow "the file".
    ///   - repair: the remedy for such content.
    fileprivate func key<Key>(
        upTo limit: Int = 1024, remedy: String, else problem: String, repair: String, _ parse: ([UInt8]) -> Key?
    ) throws(CommandFailure) -> Key {
        guard let key = parse(try read(upTo: limit, remedy: remedy)) else {
            throw CommandFailure(.data, "\(kind) \(path) \(problem): \(repair)")
        }
        return key
    }

    fileprivate static func bytes(hex content: [UInt8]) -> [UInt8]? {
        WakuCrypto.bytes(hex: String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }
}

/// A file with a private key: 64 hexadecimal digits.
enum IdentityFile {
    static func read(_ path: String) throws(CommandFailure) -> PrivateKey {
        try PrivateFile(kind: "identity file", path: path).key(
            remedy: "make one with waku-push identity new --out \(path)",
            else: "does not contain 64 hexadecimal digits of a secp256k1 key",
            // Nothing opens the registrations without the key.
            repair: "restore the copy of the key; only a new node gets a new key, in another file"
        ) { PrivateFile.bytes(hex: $0).flatMap { try? PrivateKey(bytes: $0) } }
    }

    static func write(_ key: PrivateKey, to path: String) throws(CommandFailure) {
        try PrivateFile(kind: "identity file", path: path).create(key.withBytes { hexString($0) })
    }
}

/// A file with the key of a libp2p node: libp2p's encoding of the private key in hexadecimal.
enum NodeKeyFile {
    /// Reads the key, or creates the file with a new one.
    ///
    /// - Parameter identity: the push identity, which must be a different key so that peers can't link the node's address to it.
    static func readOrCreate(_ path: String, besides identity: PrivateKey) throws(CommandFailure) -> NodeKey {
        let file = PrivateFile(kind: "node key file", path: path)
        let key: NodeKey
        if FileManager.default.fileExists(atPath: path) {
            let remedy = "remove it to have a new one created"
            key = try file.key(remedy: remedy, else: "does not contain a libp2p private key", repair: remedy) {
                PrivateFile.bytes(hex: $0).flatMap { try? NodeKey(parsing: $0) }
            }
        } else {
            key = .generate()
            try file.create(key.encoded().withBytes { hexString($0) })
        }
        guard key.peerID != NodeKey(identity).peerID else {
            throw CommandFailure(.data, "node key file \(path) contains the push identity: set --node-key to a file that does not exist")
        }
        return key
    }
}

/// A file with the X25519 key of Session's onion requests: 32 bytes, or 64 hexadecimal digits.
enum OnionKeyFile {
    static func read(_ path: String, _ sodium: Sodium) throws(CommandFailure) -> OnionKey {
        try PrivateFile(kind: "onion key file", path: path).key(
            remedy: "make one with waku-push session key new --out \(path)", else: "contains neither 32 bytes nor 64 hexadecimal digits",
            repair: "restore the copy of the key, or make a new one in another file with waku-push session key new"
        ) { content in
            let secret = content.count == OnionKey.byteCount ? content : PrivateFile.bytes(hex: content)
            return secret.flatMap { OnionKey(SecretBytes($0), sodium: sodium) }
        }
    }

    /// Creates a file with a new key.
    static func create(_ path: String, _ sodium: Sodium) throws(CommandFailure) -> OnionKey {
        let secret = SecretBytes.random(count: OnionKey.byteCount)
        guard let key = OnionKey(secret, sodium: sodium) else { throw CommandFailure(.data, "the key could not be made") }
        try PrivateFile(kind: "onion key file", path: path).create(secret.withBytes { hexString($0) })
        return key
    }
}

/// A file with a VAPID key.
enum VAPIDKeyFile {
    static func read(_ path: String) throws(CommandFailure) -> VAPIDKey {
        try PrivateFile(kind: "VAPID key file", path: path).key(
            upTo: 8192, remedy: "make one with waku-push identity new-vapid --out \(path)",
            else: "contains neither a PEM key of P-256 nor 32 bytes in base64url",
            repair: "restore the copy of the key, or make a new one in another file with waku-push identity new-vapid",
            VAPIDKey.init(file:))
    }

    /// Creates a file with a new key.
    static func create(_ path: String) throws(CommandFailure) -> VAPIDKey {
        let key = VAPIDKey(.generate())
        try PrivateFile(kind: "VAPID key file", path: path).create(key.fileText)
        return key
    }
}
