import CPushMessages
public import Core
import Waku
public import WakuCrypto

extension V01 {
    /// The server at which a device is registered, as published by the device's owner.
    public struct AdvertisementInfo: Hashable, Sendable {
        /// The server's public key, compressed.
        public let publicKey: [UInt8]
        /// Empty when only some contacts may have the token: they query the server.
        public let accessToken: AccessToken
        /// The owner's device.
        public let installationID: InstallationID

        /// - Parameters:
        ///   - publicKey: The server's public key, 33 bytes.
        ///   - accessToken: Empty when only some contacts may have it.
        ///   - installationID: The owner's device.
        public init(publicKey: [UInt8], accessToken: AccessToken, installationID: InstallationID) {
            self.publicKey = publicKey
            self.accessToken = accessToken
            self.installationID = installationID
        }
    }

    /// The advertisement that a registrant publishes on its contact code topic. `1 push_notification_info`: a row for each server and device.
    public struct ContactCodeAdvertisement: Hashable, Sendable {
        private static let rowLimit = 10_000

        /// A row for each server and device.
        public let info: [AdvertisementInfo]

        /// - Parameter info: A row for each server and device; empty after unregistering.
        public init(info: [AdvertisementInfo]) {
            self.info = info
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: Self.rowLimit, nestedFieldLimit: 64)
            self = try ProtobufC.decode(bytes, protobuf__v01__contact_code_advertisement__init) { message throws(ProtobufError) in
                let (count, start) = (message.pointee.n_push_notification_info, message.pointee.push_notification_info)
                let info = try elements(count, start) { row throws(ProtobufError) in
                    AdvertisementInfo(
                        publicKey: row.public_key.bytes, accessToken: AccessToken(bytes: try row.access_token.boundedUTF8()),
                        installationID: InstallationID(bytes: try row.installation_id.boundedUTF8()))
                }
                return ContactCodeAdvertisement(info: info)
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/contactCodeAdvertisement``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__contact_code_advertisement__init) { message, arena in
                (message.n_push_notification_info, message.push_notification_info) = (
                    info.count,
                    arena.messages(info, protobuf__v01__advertisement_info__init) { item, row in
                        row.public_key = arena.data(item.publicKey)
                        row.access_token = arena.data(item.accessToken.bytes)
                        row.installation_id = arena.data(item.installationID.bytes)
                    }
                )
            }
        }
    }
}

extension V01 {
    /// A ``ContactCodeAdvertisement`` with its owner's signature, in the form of a Waku payload: an envelope of type 17, bare or, as later clients
    /// send messages on public topics, in a ``ProtocolMessage``.
    ///
    /// Only the envelope's signature identifies the owner: the Waku payload may be signed by another key.
    public struct SignedAdvertisement: Sendable {
        /// The owner of the devices, recovered from the signature.
        public let owner: PublicKey
        /// Covered by the owner's signature.
        public let advertisement: ContactCodeAdvertisement

        /// - Throws: ``EnvelopeError``, with `otherKind` for messages that are not advertisements.
        public init(parsing data: [UInt8]) throws(EnvelopeError) {
            try self.init(parsing: data, of: nil)
        }

        /// - Parameter registrant: If another key signed it, the rows are not parsed, and left out; nil for any signer.
        package init(parsing data: [UInt8], of registrant: PublicKey?) throws(EnvelopeError) {
            let wrapping = try? ProtocolMessage(parsing: data)
            let envelope = wrapping.flatMap { $0.publicMessage.isEmpty ? nil : $0.publicMessage } ?? data
            let (signer, payload) = try MetadataEnvelope.signed(type: MessageType.contactCodeAdvertisement.rawValue, in: envelope)
            owner = signer
            let isWanted = registrant == nil || signer == registrant
            do { advertisement = try ContactCodeAdvertisement(parsing: isWanted ? payload : []) } catch { throw .malformed }
        }
    }
}
