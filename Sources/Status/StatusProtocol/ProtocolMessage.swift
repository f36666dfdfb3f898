import CPushMessages
public import Core
import Waku

/// The wrapper that deployed clients put around messages on public topics.
///
///     2 installation_id    3 bundles: key bundles of the secure transport, repeated    102 public_message
public struct ProtocolMessage: Hashable, Sendable {
    private static let fieldLimit = 256

    /// The sender's installation.
    public var installationID: InstallationID
    /// Encoded, passed on unchanged.
    public var bundles: [[UInt8]]
    /// The envelope. Empty for messages of the secure transport, which this package does not read.
    public var publicMessage: [UInt8]

    /// - Parameters:
    ///   - installationID: The sender's installation.
    ///   - bundles: Encoded key bundles of the secure transport.
    ///   - publicMessage: An encoded envelope.
    public init(installationID: InstallationID, bundles: [[UInt8]] = [], publicMessage: [UInt8]) {
        self.installationID = installationID
        self.bundles = bundles
        self.publicMessage = publicMessage
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        try ProtobufScan.check(bytes, fieldLimit: Self.fieldLimit)
        self = try ProtobufC.decode(bytes, protobuf__protocol_message__init) { message throws(ProtobufError) in
            ProtocolMessage(
                installationID: InstallationID(bytes: try message.pointee.installation_id.utf8()),
                bundles: byteLists(message.pointee.n_bundles, message.pointee.bundles),
                publicMessage: message.pointee.public_message.bytes)
        }
    }

    /// The protobuf encoding: the data of a Waku payload.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__protocol_message__init) { message, arena in
            message.installation_id = arena.data(installationID.bytes)
            (message.n_bundles, message.bundles) = (bundles.count, arena.list(bundles))
            message.public_message = arena.data(publicMessage)
        }
    }
}
