package import WakuCrypto

/// An X25519 key of CURVE.
package struct CurveKey: Sendable {
    package let secret: SecretBytes
    /// 32 bytes.
    package let publicKey: [UInt8]

    /// - Parameter secret: 32 bytes; by default a new key.
    package init(_ secret: SecretBytes = .random(count: 32), sodium: Sodium) {
        self.secret = secret
        publicKey = sodium.x25519PublicKey(of: secret)
    }
}

/// The client's half of CURVE's handshake, RFC 26. C and S are the long-term keys of client and server, C′ and S′ those of this connection; small
/// letters are the private halves. Numbers are big-endian; each command is preceded by the length and the characters of its name.
///
///     HELLO      version 01 00 ‖ 0(72) ‖ C′(32) ‖ nonce(8) ‖ box [0(64)] (c′, S)
///     WELCOME    nonce(16) ‖ box [S′(32) ‖ cookie(96)] (s, C′)
///     INITIATE   cookie(96) ‖ nonce(8) ‖ box [C(32) ‖ nonce(16) ‖ vouch(80) ‖ metadata] (c′, S′)
///                vouch: box [C′(32) ‖ S(32)] (c, S′)
///     READY      nonce(8) ‖ box [metadata] (s′, C′)
struct CurveHandshake: Sendable {
    private static let welcomePrefix = [7] + Array("WELCOME".utf8)
    private static let welcomeByteCount = 168

    private let sodium: Sodium
    private let serverKey: [UInt8]
    private let key: CurveKey
    private let connectionKey: CurveKey
    /// Of c′ and S.
    private let boxKey: SymmetricKey

    /// - Parameters:
    ///   - serverKey: S, 32 bytes.
    ///   - key: C.
    /// - Throws: ``CryptoError/invalidKey`` if the server's key is of small order.
    init(sodium: Sodium, serverKey: [UInt8], key: CurveKey) throws(CryptoError) {
        (self.sodium, self.serverKey, self.key) = (sodium, serverKey, key)
        connectionKey = CurveKey(sodium: sodium)
        boxKey = try sodium.boxKey(connectionKey.secret, with: serverKey)
    }

    /// The first command, with nonce 1.
    var hello: [UInt8] {
        let nonce = CurveSession.nonceBytes(1)
        var command: [UInt8] = [5] + Array("HELLO".utf8) + [1, 0] + [UInt8](repeating: 0, count: 72)
        command += connectionKey.publicKey + nonce
        command += sodium.boxSeal([UInt8](repeating: 0, count: 64), key: boxKey, nonce: Array("CurveZMQHELLO---".utf8) + nonce)
        return command
    }

    /// Answers WELCOME with INITIATE, with nonce 2.
    ///
    /// - Throws: ``CryptoError`` if the command is not a WELCOME of this server, or its S′ is of small order.
    func initiate(answering welcome: [UInt8], metadata: [UInt8]) throws(CryptoError) -> (command: [UInt8], session: CurveSession) {
        guard welcome.count == Self.welcomeByteCount, welcome.starts(with: Self.welcomePrefix) else { throw .truncated }
        let opened = try sodium.boxOpen(welcome[24...], key: boxKey, nonce: Array("WELCOME-".utf8) + welcome[8..<24])
        let (serverKey, cookie) = (Array(opened[..<32]), opened[32...])
        let sessionKey = try sodium.boxKey(connectionKey.secret, with: serverKey)
        let vouchNonce = randomBytes(16)
        let vouch = sodium.boxSeal(
            connectionKey.publicKey + self.serverKey, key: try sodium.boxKey(key.secret, with: serverKey),
            nonce: Array("VOUCH---".utf8) + vouchNonce)
        let nonce = CurveSession.nonceBytes(2)
        let box = sodium.boxSeal(
            key.publicKey + vouchNonce + vouch + metadata, key: sessionKey, nonce: Array("CurveZMQINITIATE".utf8) + nonce)
        let command = [8] + Array("INITIATE".utf8) + cookie + nonce + box
        return (command, CurveSession(sodium: sodium, key: sessionKey))
    }
}

/// CURVE after INITIATE: boxes of c′ and S′. Both sides' nonces grow with each box.
///
///     MESSAGE    nonce(8) ‖ box [flags(1) ‖ part]      flags: 1 more parts follow, 2 command
struct CurveSession: Sendable {
    /// Bytes of a frame besides those of the part.
    static let overhead = messagePrefix.count + 8 + Sodium.Box.tagByteCount + 1

    private static let readyPrefix = [5] + Array("READY".utf8)
    private static let messagePrefix = [7] + Array("MESSAGE".utf8)
    private static let clientNonce = Array("CurveZMQMESSAGEC".utf8)
    private static let serverNonce = Array("CurveZMQMESSAGES".utf8)

    private let sodium: Sodium
    private let key: SymmetricKey
    private var lastNonce: UInt64 = 2
    private var lastServerNonce: UInt64 = 0

    fileprivate init(sodium: Sodium, key: SymmetricKey) {
        (self.sodium, self.key) = (sodium, key)
    }

    /// - Returns: the server's metadata.
    mutating func open(ready: [UInt8]) throws(CryptoError) -> [UInt8] {
        try open(ready, after: Self.readyPrefix, nonce: Array("CurveZMQREADY---".utf8))
    }

    mutating func seal(_ part: [UInt8], flags: UInt8) -> [UInt8] {
        lastNonce += 1
        let nonce = Self.nonceBytes(lastNonce)
        return Self.messagePrefix + nonce + sodium.boxSeal([flags] + part, key: key, nonce: Self.clientNonce + nonce)
    }

    /// - Throws: ``CryptoError`` if it is not a MESSAGE of the server, or not newer than the one before.
    mutating func open(_ message: [UInt8]) throws(CryptoError) -> (flags: UInt8, part: [UInt8]) {
        var opened = try open(message, after: Self.messagePrefix, nonce: Self.serverNonce)
        guard let flags = opened.first else { throw .truncated }
        opened.removeFirst()
        return (flags, opened)
    }

    private mutating func open(_ command: [UInt8], after prefix: [UInt8], nonce: [UInt8]) throws(CryptoError) -> [UInt8] {
        guard command.count >= prefix.count + 8, command.starts(with: prefix) else { throw .truncated }
        let bytes = command[prefix.count..<prefix.count + 8]
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard number > lastServerNonce else { throw .authenticationFailed }
        let opened = try sodium.boxOpen(command[(prefix.count + 8)...], key: key, nonce: nonce + bytes)
        lastServerNonce = number
        return opened
    }

    static func nonceBytes(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}
