import Core
import WakuCrypto

/// The address of an oxenmq server.
///
///     ipc:///path      tcp://host:port      curve://host:port/<64 hex digits of its X25519 key>
package struct OxenAddress: Hashable, Sendable {
    /// The endpoint for libzmq.
    package let endpoint: String
    /// The server's CURVE key, 32 bytes; nil for an unencrypted connection.
    package let serverKey: [UInt8]?

    package init(endpoint: String, serverKey: [UInt8]?) {
        self.endpoint = endpoint
        self.serverKey = serverKey
    }

    /// nil unless the text has one of the three forms.
    package init?(_ text: String) {
        guard text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }), text.utf8.count <= 300 else { return nil }
        if text.hasPrefix("ipc://") {
            // Absolute paths only; abstract socket names of libzmq (@…) are refused.
            guard text.dropFirst(6).hasPrefix("/"), text.count > 7 else { return nil }
            self.init(endpoint: text, serverKey: nil)
        } else if text.hasPrefix("tcp://") {
            guard Self.isHostAndPort(text.dropFirst(6)) else { return nil }
            self.init(endpoint: text, serverKey: nil)
        } else if text.hasPrefix("curve://") {
            let parts = text.dropFirst(8).split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, Self.isHostAndPort(parts[0]), let key = bytes(hex: parts[1]), key.count == 32 else { return nil }
            self.init(endpoint: "tcp://\(parts[0])", serverKey: key)
        } else {
            return nil
        }
    }

    private static func isHostAndPort(_ text: Substring) -> Bool {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else { return false }
        let host = text[..<colon]
        if host.hasPrefix("[") { return host.hasSuffix("]") && host.count > 3 }
        return !host.isEmpty && host.utf8.allSatisfy { $0.isLetterOrDigit || ".-".utf8.contains($0) }
    }
}
