import CPushMessages
public import Core
import Waku
public import WakuCrypto

extension V01 {
    /// A query for the devices of registrants. `1 public_keys`: hashes, 32 bytes each.
    public struct Query: Hashable, Sendable {
        /// Queries with more keys are dropped.
        public static let keyLimit = 1000

        /// As received. Values that are not 32 bytes long match no registrant.
        public let publicKeys: [[UInt8]]

        /// - Parameter registrants: At most ``keyLimit``.
        public init(_ registrants: [KeyHash]) {
            publicKeys = registrants.map(\.bytes)
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            try ProtobufScan.check(bytes, fieldLimit: Self.keyLimit + 64)
            publicKeys = try ProtobufC.decode(bytes, protobuf__v01__query__init) { message throws(ProtobufError) in
                guard message.pointee.n_public_keys <= Self.keyLimit else { throw .tooMany }
                return byteLists(message.pointee.n_public_keys, message.pointee.public_keys)
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/query``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__query__init) { message, arena in
                (message.n_public_keys, message.public_keys) = (publicKeys.count, arena.list(publicKeys))
            }
        }
    }

    /// A device in the answer to a ``Query``.
    public struct QueryInfo: Hashable, Sendable {
        /// Empty if ``encryptedAccessTokens`` is not.
        public let accessToken: AccessToken
        /// The registrant's device.
        public let installationID: InstallationID
        /// The registrant's ``KeyHash``.
        public let publicKey: [UInt8]
        /// The access token, sealed to each contact that may have it.
        public let encryptedAccessTokens: [[UInt8]]

        /// - Parameters:
        ///   - accessToken: Empty when `encryptedAccessTokens` has entries: a row contains one of the two.
        ///   - installationID: The registrant's device.
        ///   - publicKey: The registrant's ``KeyHash``, 32 bytes.
        ///   - encryptedAccessTokens: ``FilterSettings/allowedKeyList`` of the device.
        public init(accessToken: AccessToken, installationID: InstallationID, publicKey: [UInt8], encryptedAccessTokens: [[UInt8]]) {
            self.accessToken = accessToken
            self.installationID = installationID
            self.publicKey = publicKey
            self.encryptedAccessTokens = encryptedAccessTokens
        }

        init(_ message: Protobuf__V01__QueryInfo) throws(ProtobufError) {
            self.init(
                accessToken: AccessToken(bytes: try message.access_token.boundedUTF8()),
                installationID: InstallationID(bytes: try message.installation_id.boundedUTF8()), publicKey: message.public_key.bytes,
                encryptedAccessTokens: byteLists(message.n_encrypted_access_tokens, message.encrypted_access_tokens))
        }

        func fill(_ message: inout Protobuf__V01__QueryInfo, _ arena: ProtobufArena) {
            message.access_token = arena.data(accessToken.bytes)
            message.installation_id = arena.data(installationID.bytes)
            message.public_key = arena.data(publicKey)
            (message.n_encrypted_access_tokens, message.encrypted_access_tokens) = (
                encryptedAccessTokens.count, arena.list(encryptedAccessTokens)
            )
        }
    }

    /// The answer to a ``Query``. `1 info`: a row for each device.
    public struct QueryResponse: Hashable, Sendable {
        private static let rowLimit = 10_000

        /// The enabled devices of all registrants in the query. Servers do not answer when there is none.
        public let info: [QueryInfo]

        /// - Parameter info: A row for each enabled device.
        public init(info: [QueryInfo]) {
            self.info = info
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            try ProtobufScan.checkNested(
                bytes, field: 1, fieldLimit: Self.rowLimit, nestedFieldLimit: Preferences.listEntryLimit + 64)
            self = try ProtobufC.decode(bytes, protobuf__v01__query_response__init) { message throws(ProtobufError) in
                QueryResponse(info: try elements(message.pointee.n_info, message.pointee.info, QueryInfo.init))
            }
        }

        /// The protobuf encoding: the payload of an ``Envelope`` of type ``MessageType/queryResponse``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__query_response__init) { message, arena in
                (message.n_info, message.info) = (info.count, arena.messages(info, protobuf__v01__query_info__init) { $0.fill(&$1, arena) })
            }
        }
    }

    // MARK: Access tokens for contacts

    /// An entry of ``FilterSettings/allowedKeyList``: `nonce(12) ‖ AES-256-GCM(access token) ‖ tag(16)`. The key is the X coordinate of the
    /// ECDH of owner and contact.
    public static func sealToken(_ token: AccessToken, from owner: PrivateKey, to contact: PublicKey) -> [UInt8] {
        AESGCM.seal(token.bytes, key: owner.sharedKey(with: contact), layout: .nonceFirst)
    }

    /// Decrypts the access token from the list entry sealed to this contact; nil if there is no such entry.
    public static func openToken(_ entries: [[UInt8]], from owner: PublicKey, by contact: PrivateKey) -> AccessToken? {
        let key = contact.sharedKey(with: owner)
        for entry in entries {
            let sealed = entry.count.isMultiple(of: 2) ? meaning(of: entry, byteCount: entry.count / 2) : entry
            guard let plain = try? AESGCM.open(sealed, key: key, layout: .nonceFirst) else { continue }
            let token = AccessToken(bytes: plain)
            if token.isUUID { return token }
        }
        return nil
    }
}
