import NIOCore
@testable import SessionProtocol
import Testing
import WakuCrypto

/// Frames of ZMTP.
enum ZMTPFrame {
    static let nullGreeting = greeting("NULL")
    static let curveGreeting = greeting("CURVE")

    static func greeting(_ mechanism: String, version: UInt8 = 3) -> [UInt8] {
        [0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, version, 1] + Array(mechanism.utf8)
            + [UInt8](repeating: 0, count: 52 - mechanism.utf8.count)
    }

    static func encode(_ body: [UInt8], flags: UInt8 = 0) -> [UInt8] {
        guard body.count > 255 else { return [flags, UInt8(body.count)] + body }
        return [flags | 2] + withUnsafeBytes(of: UInt64(body.count).bigEndian) { Array($0) } + body
    }

    static func command(_ name: String, _ data: [UInt8] = []) -> [UInt8] { [UInt8(name.utf8.count)] + Array(name.utf8) + data }

    static func metadata(_ type: String = "ROUTER") -> [UInt8] {
        command("Socket-Type", [0, 0, 0, UInt8(type.utf8.count)]) + Array(type.utf8) + command("Identity", [0, 0, 0, 0])
    }

    static func split(_ bytes: [UInt8]) -> [(flags: UInt8, body: [UInt8])] {
        var (reader, frames) = (ByteBuffer(bytes: bytes), [(flags: UInt8, body: [UInt8])]())
        while let flags: UInt8 = reader.readInteger() {
            let length = flags & 2 == 0 ? reader.readInteger(as: UInt8.self).map(Int.init) : reader.readInteger(as: Int.self)
            frames.append((flags, length.flatMap { reader.readBytes(length: $0) } ?? []))
        }
        return frames
    }
}

/// The server's half of CURVE, by RFC 26, with the mistakes of a test.
struct CurveServer {
    let sodium: Sodium
    let key: CurveKey
    let connectionKey: CurveKey
    private var clientKey: [UInt8] = []
    private var sessionKey: SymmetricKey?
    private(set) var nonce: UInt64 = 0

    init(sodium: Sodium) {
        self.sodium = sodium
        (key, connectionKey) = (CurveKey(sodium: sodium), CurveKey(sodium: sodium))
    }

    /// - Parameter point: S′.
    mutating func welcome(to hello: [UInt8], point: [UInt8]? = nil) throws -> [UInt8] {
        #expect(hello.count == 200 && hello.starts(with: ZMTPFrame.command("HELLO", [1, 0])) && hello[8..<80].allSatisfy { $0 == 0 })
        clientKey = Array(hello[80..<112])
        let boxKey = try sodium.boxKey(key.secret, with: clientKey)
        let signature = try sodium.boxOpen(hello[120...], key: boxKey, nonce: Array("CurveZMQHELLO---".utf8) + hello[112..<120])
        #expect(signature == [UInt8](repeating: 0, count: 64))
        let nonce = randomBytes(16)
        let plain = (point ?? connectionKey.publicKey) + [UInt8](repeating: 7, count: 96)
        return ZMTPFrame.command("WELCOME", nonce) + sodium.boxSeal(plain, key: boxKey, nonce: Array("WELCOME-".utf8) + nonce)
    }

    mutating func ready(to initiate: [UInt8], metadata: [UInt8] = ZMTPFrame.metadata()) throws -> [UInt8] {
        #expect(initiate.starts(with: ZMTPFrame.command("INITIATE", [UInt8](repeating: 7, count: 96))))
        let boxKey = try sodium.boxKey(connectionKey.secret, with: clientKey)
        sessionKey = boxKey
        let opened = try sodium.boxOpen(initiate[113...], key: boxKey, nonce: Array("CurveZMQINITIATE".utf8) + initiate[105..<113])
        let vouchKey = try sodium.boxKey(connectionKey.secret, with: Array(opened[..<32]))
        let vouch = try sodium.boxOpen(opened[48..<128], key: vouchKey, nonce: Array("VOUCH---".utf8) + opened[32..<48])
        #expect(vouch == clientKey + key.publicKey && Array(opened[128...]) == ZMTPFrame.metadata("DEALER"))
        return try seal("READY", metadata, nonce: "CurveZMQREADY---")
    }

    mutating func message(_ part: [UInt8], flags: UInt8 = 0) throws -> [UInt8] {
        try seal("MESSAGE", [flags] + part, nonce: "CurveZMQMESSAGES")
    }

    private mutating func seal(_ name: String, _ plain: [UInt8], nonce prefix: String) throws -> [UInt8] {
        nonce += 1
        let number = withUnsafeBytes(of: nonce.bigEndian) { Array($0) }
        let box = sodium.boxSeal(plain, key: try #require(sessionKey), nonce: Array(prefix.utf8) + number)
        return ZMTPFrame.command(name, number) + box
    }

    /// Opens a message of the client.
    func open(_ message: [UInt8]) throws -> (flags: UInt8, part: [UInt8], nonce: [UInt8]) {
        #expect(message.starts(with: ZMTPFrame.command("MESSAGE")))
        let nonce = Array(message[8..<16])
        let plain = try sodium.boxOpen(message[16...], key: try #require(sessionKey), nonce: Array("CurveZMQMESSAGEC".utf8) + nonce)
        return (plain[0], Array(plain[1...]), nonce)
    }
}
