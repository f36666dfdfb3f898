import Foundation
import LibP2P
import WakuCrypto

/// A file with the key of a libp2p node: libp2p's encoding of the private key in hexadecimal, accessible to its owner only.
enum NodeKeyFile {
    private static let sizeLimit = 1024

    /// Reads the key, or creates the file with a new one.
    ///
    /// - Parameters:
    ///   - path: the file.
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
        let file = URL(fileURLWithPath: path)
        if let attributes = try? FileManager.default.attributesOfItem(atPath: path), let mode = attributes[.posixPermissions] as? Int,
            mode & 0o077 != 0
        {
            throw CommandFailure(
                .permission, "node key file \(path) is readable by others (mode 0\(String(mode, radix: 8))): chmod 600 \(path)")
        }
        guard let handle = try? FileHandle(forReadingFrom: file), let content = try? handle.read(upToCount: sizeLimit) else {
            throw CommandFailure(.permission, "node key file \(path) can't be read: give this user access to it")
        }
        let text = String(decoding: content, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard let bytes = bytes(hex: text), let key = try? NodeKey(parsing: bytes) else {
            throw CommandFailure(.data, "node key file \(path) does not contain a libp2p private key: remove it to have a new one created")
        }
        return key
    }

    private static func write(_ key: NodeKey, to path: String) throws(CommandFailure) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw CommandFailure(
                .cannotCreate, "node key file \(path) can't be made: is the folder there, and may this user write to it?")
        }
        defer { close(file) }
        let text = Array((key.encoded().withBytes { hexString($0) } + "\n").utf8)
        guard Foundation.write(file, text, text.count) == text.count, fsync(file) == 0 else {
            unlink(path)
            throw CommandFailure(.cannotCreate, "node key file \(path) can't be written: is the disk full?")
        }
    }
}
