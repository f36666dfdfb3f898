public import Core
import Foundation
import NodeMetrics
public import Waku
public import WakuCrypto

/// A registration that its owner signed and sealed to a node's key.
///
///     ECIES to the node's key of: signature(65) ‖ version(8) ‖ end(8) ‖ device
///
/// Numbers are big-endian, `end` is in seconds since 1970, and `device` is JSON; without it, the registration ends the owner's device. The signature
/// covers Keccak-256(node's key(33) ‖ version ‖ end ‖ length of the topic(2) ‖ topic ‖ device), so a node can't forward a registration to another node,
/// and it is not valid for another protocol.
public struct SealedRegistration<Device: RegisteredDevice>: Sendable {
    /// The maximum size of a sealed registration.
    public static var maximumByteCount: Int { 16_384 }
    private static var headByteCount: Int { Signature.byteCount + 16 }
    /// Nanoseconds since 1970 fit into a `Timestamp` up to here.
    private static var lastEnd: UInt64 { 9_000_000_000 }

    /// The signer.
    public let owner: PublicKey
    /// Above 0, and higher than in the owner's earlier registrations.
    public let version: UInt64
    /// From here on the device is not notified, and afterwards the registration is deleted.
    public let end: Timestamp
    /// nil ends the owner's device.
    public let device: Device?
    /// The topic on which it was sent.
    package let topic: ContentTopic
    /// The key that it was sealed to.
    package let node: PrivateKey
    /// The hash that the owner signed: equal for the same registration sealed twice.
    package let digest: [UInt8]

    /// Makes the payload of a registration message.
    ///
    /// - Parameters:
    ///   - device: nil ends the owner's device.
    ///   - version: see ``version``.
    ///   - end: in seconds since 1970.
    ///   - topic: the topic on which the message is sent.
    ///   - owner: the key that identifies the device.
    /// - Throws: `EncodingError`
    public static func seal(
        _ device: Device?, version: UInt64, end: UInt64, on topic: ContentTopic, by owner: PrivateKey, to node: PublicKey
    ) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let json = try device.map { Array(try encoder.encode($0)) } ?? []
        let numbers = bigEndian(version) + bigEndian(end)
        let signature = Signature(of: digest(node, numbers, topic, json), by: owner)
        return ECIES.seal(signature.bytes + numbers + json, to: node)
    }

    /// Opens, verifies and decodes a registration.
    ///
    /// - Returns: nil unless it is a valid registration that is sealed to one of the keys.
    public init?(opening payload: [UInt8], on topic: ContentTopic, with keys: [PrivateKey]) {
        guard payload.count <= Self.maximumByteCount else { return nil }
        for key in keys {
            guard let opened = try? ECIES.open(payload, with: key) else { continue }
            self.init(opened: opened, on: topic, by: key)
            return
        }
        return nil
    }

    private init?(opened: [UInt8], on topic: ContentTopic, by node: PrivateKey) {
        guard opened.count >= Self.headByteCount else { return nil }
        let numbers = opened[Signature.byteCount..<Self.headByteCount]
        let json = opened[Self.headByteCount...]
        digest = Self.digest(node.publicKey, Array(numbers), topic, Array(json))
        version = numbers.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        let seconds = numbers.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
        guard version > 0, seconds <= Self.lastEnd,
            let owner = try? Signature(parsing: opened.prefix(Signature.byteCount)).signer(of: digest)
        else { return nil }
        if json.isEmpty {
            device = nil
        } else {
            guard let decoded = try? JSONDecoder.decode(Device.self, fromForeign: json), decoded.isValid else { return nil }
            device = decoded
        }
        self.owner = owner
        end = Timestamp(rawValue: Int64(seconds) * 1_000_000_000)
        self.topic = topic
        self.node = node
    }

    private static func digest(_ node: PublicKey, _ numbers: [UInt8], _ topic: ContentTopic, _ json: [UInt8]) -> [UInt8] {
        let name = Array(topic.rawValue.utf8)
        return Keccak256.hash(node.compressed + numbers + bigEndian(UInt16(truncatingIfNeeded: name.count)) + name + json)
    }

    private static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}

extension NodeServices {
    /// Opens the registration in a message on its topic, if limits admit it.
    /// - Throws: ``Drop``, unless it is a valid registration that is sealed to one of the keys, and the owner's limits are not exceeded.
    public func open<Device>(
        _ incoming: Incoming, with keys: [PrivateKey], at now: Timestamp
    ) throws(Drop) -> SealedRegistration<Device> {
        let message = incoming.received.message
        guard let registration = SealedRegistration<Device>(opening: message.payload, on: message.contentTopic, with: keys) else {
            throw Drop(.droppedMalformedMessage)
        }
        try limits?.admit(registrationBy: registration.owner, digest: registration.digest, isRetry: incoming.isRetry, at: now)
        return registration
    }
}
