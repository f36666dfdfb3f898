import CPushMessages
import Core
public import Waku
public import WakuCrypto

/// The kind of the push message in an envelope: the `type` of an ApplicationMetadataMessage.
public enum MessageKind: UInt32, Sendable, CaseIterable {
    case registration = 16
    case registrationResponse = 17
    case query = 18
    case queryResponse = 19
    case request = 20
    case response = 21
}

/// An ApplicationMetadataMessage: sender, type and payload. Carried in Waku payloads, directly or in segments.
///
///     1 signature: recoverable, over Keccak-256(payload)    2 payload    3 type
///
/// Its id is Keccak-256(sender's 65-byte key ‖ the bytes as received).
public struct MetadataEnvelope: Sendable {
    private static let fieldLimit = 64

    /// Determines the message type of ``payload``.
    public let kind: MessageKind
    /// Recovered from the signature; the signer of the Waku payload if the envelope is unsigned.
    public let sender: PublicKey
    /// The encoded push message, never empty. For registrations, sealed with AES-GCM under the key shared by client and server.
    public let payload: [UInt8]
    private let bytes: [UInt8]
    /// 32 bytes. Answers to queries refer to it in `message_id`. Hashes the whole envelope at each call: only queries and requests need it.
    public var id: [UInt8] { Self.id(of: bytes, from: sender) }

    public init(parsing bytes: [UInt8], wakuSigner: PublicKey) throws(EnvelopeError) {
        let (kind, payload, signer) = try Self.open(bytes, as: MessageKind.self)
        self.init(kind, payload, from: signer ?? wakuSigner, bytes)
    }

    /// - Parameter frame: the Waku payload that the envelope came in, or the last of those with its segments. Its signer is recovered only if the
    ///   envelope is unsigned.
    public init(parsing bytes: [UInt8], in frame: PayloadFrame) throws(EnvelopeError) {
        let (kind, payload, signer) = try Self.open(bytes, as: MessageKind.self)
        guard let sender = if let signer { signer } else { try frame.envelopeSender() } else { throw .badSignature }
        self.init(kind, payload, from: sender, bytes)
    }

    private init(_ kind: MessageKind, _ payload: [UInt8], from sender: PublicKey, _ bytes: [UInt8]) {
        self.kind = kind
        self.payload = payload
        self.sender = sender
        self.bytes = bytes
    }

    fileprivate static func id(of bytes: [UInt8], from sender: PublicKey) -> [UInt8] { Keccak256.hash(sender.uncompressed + bytes) }

    /// Encodes and signs an envelope.
    public static func encode(_ kind: MessageKind, payload: [UInt8], signedBy key: PrivateKey) -> EncodedEnvelope {
        EncodedEnvelope(bytes: encode(type: kind.rawValue, payload: payload, signedBy: key), sender: key.publicKey)
    }

    /// - Parameter key: signs the payload; nil for an unsigned envelope.
    static func encode(type: UInt32, payload: [UInt8], signedBy key: PrivateKey?) -> [UInt8] {
        ProtobufC.encode(protobuf__application_metadata_message__init) { message, arena in
            if let key { message.signature = arena.data(Signature(of: Keccak256.hash(payload), by: key).bytes) }
            message.payload = arena.data(payload)
            message.type = Protobuf__ApplicationMetadataMessage__Type(rawValue: type)
        }
    }

    /// Parses an envelope of one of these kinds. The signer is nil when the envelope is unsigned.
    static func open<Kind: RawRepresentable<UInt32>>(
        _ bytes: [UInt8], as kinds: Kind.Type
    ) throws(EnvelopeError) -> (kind: Kind, payload: [UInt8], signer: PublicKey?) {
        let parts = try parse(bytes)
        guard let kind = Kind(rawValue: parts.type) else { throw .otherKind }
        guard !parts.payload.isEmpty else { throw .empty }
        guard !parts.signature.isEmpty else { return (kind, parts.payload, nil) }
        do {
            return (kind, parts.payload, try Signature(parsing: parts.signature).signer(of: Keccak256.hash(parts.payload)))
        } catch {
            throw .badSignature
        }
    }

    /// Parses a signed envelope of this type.
    static func signed(type: UInt32, in bytes: [UInt8]) throws(EnvelopeError) -> (signer: PublicKey, payload: [UInt8]) {
        let parts = try parse(bytes)
        guard parts.type == type else { throw .otherKind }
        do {
            return (try Signature(parsing: parts.signature).signer(of: Keccak256.hash(parts.payload)), parts.payload)
        } catch {
            throw .badSignature
        }
    }

    private static func parse(_ bytes: [UInt8]) throws(EnvelopeError) -> (signature: [UInt8], payload: [UInt8], type: UInt32) {
        do {
            try ProtobufScan.check(bytes, fieldLimit: fieldLimit)
            return try ProtobufC.decode(bytes, protobuf__application_metadata_message__init) {
                ($0.pointee.signature.bytes, $0.pointee.payload.bytes, $0.pointee.type.rawValue)
            }
        } catch {
            throw .malformed
        }
    }
}

/// An envelope as it is sent.
public struct EncodedEnvelope: Sendable {
    public let bytes: [UInt8]
    fileprivate let sender: PublicKey
    /// See ``MetadataEnvelope/id``.
    public var id: [UInt8] { MetadataEnvelope.id(of: bytes, from: sender) }
}

extension PayloadFrame {
    /// The sender of an unsigned envelope: the signer of the Waku payload; nil if that is unsigned too.
    func envelopeSender() throws(EnvelopeError) -> PublicKey? {
        do { return try signer() } catch { throw .badSignature }
    }
}

/// Why a Waku payload is not a push message. All of these are dropped and counted.
public enum EnvelopeError: Error, Hashable, Sendable, CaseIterable {
    /// Not an ApplicationMetadataMessage, or one with too many fields.
    case malformed
    /// Not one of ``MessageKind``: the shard carries all of Status' messages.
    case otherKind
    /// The payload is empty.
    case empty
    /// Not 65 bytes with V from 0 to 3, or no key can be recovered from it.
    case badSignature
}
