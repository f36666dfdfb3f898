package import SessionProtocol
package import WakuCrypto

/// The server's half of CURVE's handshake, RFC 26, and the boxes after it, of one connection. It keeps its keys until the handshake has ended, and so
/// needs no cookie: see `CurveHandshake` for the commands.
package struct CurveServer {
    private static let cookie = [UInt8](repeating: 7, count: 96)
    private static let metadata = ZMTPFrames.metadata(socketType: "ROUTER")

    private let sodium: Sodium
    package let key: CurveKey
    package let connectionKey: CurveKey
    /// The client's key of this connection.
    private var clientKey: [UInt8] = []
    private var boxKey: SymmetricKey?
    private var lastNonce: UInt64 = 0

    /// - Parameter key: by default a new one.
    package init(sodium: Sodium, key: CurveKey? = nil) {
        self.sodium = sodium
        self.key = key ?? CurveKey(sodium: sodium)
        connectionKey = CurveKey(sodium: sodium)
    }

    /// - Parameter point: The public key of this connection; another one for a test of clients.
    /// - Throws: ``CryptoError`` if it is not a HELLO for this server.
    package mutating func welcome(to hello: [UInt8], point: [UInt8]? = nil) throws(CryptoError) -> [UInt8] {
        guard hello.count == 200, hello.starts(with: ZMTPFrames.command("HELLO", [1, 0] + [UInt8](repeating: 0, count: 72))) else {
            throw .truncated
        }
        clientKey = Array(hello[80..<112])
        let helloKey = try sodium.boxKey(key.secret, with: clientKey)
        let opened = try sodium.boxOpen(hello[120...], key: helloKey, nonce: Array("CurveZMQHELLO---".utf8) + hello[112..<120])
        guard opened.allSatisfy({ $0 == 0 }) else { throw .authenticationFailed }
        let nonce = randomBytes(16)
        let box = sodium.boxSeal(
            (point ?? connectionKey.publicKey) + Self.cookie, key: helloKey, nonce: Array("WELCOME-".utf8) + nonce)
        return ZMTPFrames.command("WELCOME", nonce) + box
    }

    /// - Parameter metadata: The server's, in READY; by default that of a ROUTER.
    /// - Returns: READY, and the client's metadata.
    /// - Throws: ``CryptoError`` if it is not an INITIATE of the client that got the WELCOME.
    package mutating func ready(
        to initiate: [UInt8], metadata: [UInt8]? = nil
    ) throws(CryptoError) -> (command: [UInt8], clientMetadata: [UInt8]) {
        guard initiate.count >= 113, initiate.starts(with: ZMTPFrames.command("INITIATE", Self.cookie)) else { throw .truncated }
        let key = try sodium.boxKey(connectionKey.secret, with: clientKey)
        let opened = try sodium.boxOpen(initiate[113...], key: key, nonce: Array("CurveZMQINITIATE".utf8) + initiate[105..<113])
        guard opened.count >= 128 else { throw .truncated }
        let vouchKey = try sodium.boxKey(connectionKey.secret, with: Array(opened[..<32]))
        let vouch = try sodium.boxOpen(opened[48..<128], key: vouchKey, nonce: Array("VOUCH---".utf8) + opened[32..<48])
        guard vouch == clientKey + self.key.publicKey else { throw .authenticationFailed }
        boxKey = key
        return (try seal("READY", metadata ?? Self.metadata, nonce: "CurveZMQREADY---"), Array(opened[128...]))
    }

    /// - Throws: ``CryptoError`` before ``ready(to:metadata:)``.
    package mutating func message(_ part: [UInt8], flags: UInt8 = 0) throws(CryptoError) -> [UInt8] {
        try seal("MESSAGE", [flags] + part, nonce: "CurveZMQMESSAGES")
    }

    private mutating func seal(_ name: String, _ plain: [UInt8], nonce prefix: String) throws(CryptoError) -> [UInt8] {
        guard let boxKey else { throw .invalidKey }
        lastNonce += 1
        let nonce = withUnsafeBytes(of: lastNonce.bigEndian) { Array($0) }
        return ZMTPFrames.command(name, nonce) + sodium.boxSeal(plain, key: boxKey, nonce: Array(prefix.utf8) + nonce)
    }

    /// Opens a MESSAGE of the client.
    package func open(_ message: [UInt8]) throws(CryptoError) -> (flags: UInt8, part: [UInt8], nonce: [UInt8]) {
        guard let boxKey, message.count >= 16, message.starts(with: ZMTPFrames.command("MESSAGE")) else { throw .truncated }
        let nonce = Array(message[8..<16])
        let plain = try sodium.boxOpen(message[16...], key: boxKey, nonce: Array("CurveZMQMESSAGEC".utf8) + nonce)
        guard let flags = plain.first else { throw .truncated }
        return (flags, Array(plain[1...]), nonce)
    }
}
