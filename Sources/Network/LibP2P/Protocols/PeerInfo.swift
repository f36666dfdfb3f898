import Core

/// The contents of an identify message, libp2p/specs, identify.
///
/// A length-prefixed protobuf `{1 public key, 2 listen addresses*, 3 protocols*, 4 observed address, 5 protocol version, 6 agent version}`.
public struct PeerInfo: Hashable, Sendable {
    /// More than enough: messages with a signed record have a few kilobytes.
    static let byteLimit = 64 * 1024
    static let protocolLimit = 512
    static let addressLimit = 64
    static let textLimit = 256

    /// The sender's identity key, checked against its peer id; nil in a push without it.
    public var publicKey: NodePublicKey?
    /// The addresses that the sender listens on, without those of unsupported transports.
    public var listenAddresses: [Multiaddr] = []
    /// The ids of the protocols that the sender serves.
    public var protocols: [String] = []
    /// The receiver's address as the sender observed it, without peer id.
    public var observedAddress: Multiaddr?
    /// The version of the network, for example `ipfs/0.1.0`; informative only.
    public var protocolVersion = ""
    /// The sender's program and version, for operators. The peer chooses it freely: escape it before display.
    public var agentVersion = ""

    /// Information without any field set.
    public init() {}

    /// - Throws: ``ConnectionError/protocolViolation(_:)``
    init(parsing bytes: [UInt8]) throws(ConnectionError) {
        var reader = ProtobufReader(bytes, refusing: [.groups, .longFieldNumbers])
        // Parsed once, however often they are repeated.
        var (key, observed): (ArraySlice<UInt8>?, ArraySlice<UInt8>?)
        var addressCount = 0
        do {
            while let field = try reader.next() {
                guard case .content(let content) = field.value else { continue }
                switch field.number {
                case 1: key = bytes[content]
                case 2:
                    addressCount += 1
                    // Addresses of other transports are ignored, and counted: parsing them takes time, too.
                    guard addressCount <= Self.addressLimit, let address = try? Multiaddr(parsing: bytes[content]) else { continue }
                    listenAddresses.append(address)
                case 4: observed = bytes[content]
                default: try take(field.number, bytes[content])
                }
            }
            publicKey = try key.map { try NodePublicKey(parsing: $0) }
            observedAddress = observed.flatMap { try? Multiaddr(parsing: $0) }
        } catch {
            throw .protocolViolation("identify: \(error)")
        }
    }

    private mutating func take(_ number: Int, _ content: ArraySlice<UInt8>) throws {
        switch number {
        case 3:
            guard protocols.count < Self.protocolLimit else { throw ProtobufError.malformed }
            protocols.append(try Self.text(content))
        case 5: protocolVersion = try Self.text(content)
        case 6: agentVersion = try Self.text(content)
        default: break
        }
    }

    private static func text(_ content: ArraySlice<UInt8>) throws(ProtobufError) -> String {
        guard content.count <= textLimit, let text = String(validating: content, as: UTF8.self) else { throw .malformed }
        return text
    }

    /// The approximate size in memory, allocation overhead included.
    var byteCount: Int { encoded().count + 64 * (protocols.count + listenAddresses.count) + 256 }

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        if let publicKey { writer.field(1, publicKey.encoded()) }
        for address in listenAddresses { writer.field(2, address.encoded()) }
        for id in protocols { writer.field(3, id.utf8) }
        if let observedAddress { writer.field(4, observedAddress.encoded()) }
        if !protocolVersion.isEmpty { writer.field(5, protocolVersion.utf8) }
        if !agentVersion.isEmpty { writer.field(6, agentVersion.utf8) }
        return writer.bytes
    }
}
