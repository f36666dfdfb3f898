import Foundation
import LibP2P
import WakuCrypto

/// A file with the key of a libp2p node: libp2p's encoding of the private key in hexadecimal, accessible to its owner only.
enum NodeKeyFile {
    private static let sizeLimit = 1024

    /// Reads the key, or creates the file with a new one.
    ///
    /// - Parameters:
    ///   - identity: the push identity, which must be a different key so that peers can't link the node's address to it.
    static func readOrCreate(_ path: String, besides identity: PrivateKey) throws(CommandFailure) -> NodeKey {
        let key: NodeKey
        if FileManager.default.fileExists(atPath: path) {
            key = try read(path)
        } else {
            key = .generate()
            try write(key, to: path)
        }
        guard key.peerID != NodeKey(identity).peerID else {
            throw CommandFailure(.data, "node key file \(path) contains the push identity: set --node-key to a file that does not exist")
        }
        return key
    }

    private static func read(_ path: String) throws(CommandFailure) -> NodeKey {
        let remedy = "remove it to have a new one created"
        let content = try file(path).read(upTo: sizeLimit, remedy: remedy)
        let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard let bytes = bytes(hex: text), let key = try? NodeKey(parsing: bytes) else {
            throw CommandFailure(.data, "node key file \(path) does not contain a libp2p private key: \(remedy)")
        }
        return key
    }

    private static func write(_ key: NodeKey, to path: String) throws(CommandFailure) {
        try file(path).create(key.encoded().withBytes { hexString($0) })
    }

    private static func file(_ path: String) -> PrivateFile { PrivateFile(kind: "node key file", path: path) }
}
