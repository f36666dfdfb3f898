import CPushMessages
public import Core
import Waku

extension V01 {
    /// The record of an account: all of its devices.
    public struct Preferences: Hashable, Sendable {
        /// Limit of an encoded record in bytes, also when it arrives in segments. Larger ones are malformed.
        public static let byteLimit = 2 << 20
        /// Limit of the devices of a valid record. ``init(parsing:)`` accepts more, so that a server can report more specific errors first.
        public static let deviceLimit = 64
        /// Limit of the devices that are parsed. Records with more are malformed.
        static let parsedDeviceLimit = 30_000
        /// Limit of the entries of all lists of all devices together. Records with more are malformed.
        public static let listEntryLimit = 120_000
        /// Limit of the number of other fields: scalars may be repeated, and unknown fields occur.
        private static let otherFieldLimit = 256

        /// All devices of the account, at most ``deviceLimit``. A record without devices has the effect of ``unregister``.
        public var devices: [Device]
        /// The record's version. Each change needs a higher one.
        public var version: UInt64
        /// Ends the registration: servers keep only the key hash and the version. The devices and the access token are ignored then.
        public var unregister: Bool
        /// The secret that a sender needs to notify these devices.
        public var accessToken: AccessToken

        /// - Parameters:
        ///   - devices: At most ``deviceLimit``, with distinct installation ids.
        ///   - version: At least 1, and higher than that of the stored record.
        ///   - accessToken: A UUID that no other record at the server uses; ignored when unregistering.
        public init(devices: [Device] = [], version: UInt64, unregister: Bool = false, accessToken: AccessToken) {
            self.devices = devices
            self.version = version
            self.unregister = unregister
            self.accessToken = accessToken
        }

        public init(parsing bytes: [UInt8]) throws(ProtobufError) {
            guard bytes.count <= Self.byteLimit else { throw .tooMany }
            var counts = FieldCounts()
            try counts.count(ProtobufReader(bytes, refusing: .groups), in: .preferences)
            self = try ProtobufC.decode(bytes, protobuf__v01__preferences__init) { message throws(ProtobufError) in
                try Preferences(message.pointee)
            }
        }

        init(_ message: Protobuf__V01__Preferences) throws(ProtobufError) {
            self.init(
                devices: try elements(message.n_device_tokens, message.device_tokens, Device.init), version: message.version,
                unregister: message.unregister != 0, accessToken: AccessToken(bytes: try message.access_token.boundedUTF8()))
        }

        /// The protobuf encoding: the payload of a ``Register``.
        public func encoded() -> [UInt8] {
            ProtobufC.encode(protobuf__v01__preferences__init) { message, arena in fill(&message, arena) }
        }

        func fill(_ message: inout Protobuf__V01__Preferences, _ arena: ProtobufArena) {
            (message.n_device_tokens, message.device_tokens) = (
                devices.count, arena.messages(devices, protobuf__v01__device_token__init) { $0.fill(&$1, arena) }
            )
            message.version = version
            message.unregister = unregister ? 1 : 0
            message.access_token = arena.data(accessToken.bytes)
        }

        /// Counts fields at every level before protobuf-c allocates memory for them.
        struct FieldCounts {
            enum Level { case preferences, device, filters }

            private var devices = 0
            private var listEntries = 0
            private var others = 0

            mutating func count(_ fields: ProtobufReader, in level: Level) throws(ProtobufError) {
                var reader = fields
                var hasFilters = false
                while let field = try reader.next() {
                    switch (level, field.number) {
                    case (.preferences, 1): devices += 1
                    case (.filters, 2), (.filters, 3): listEntries += 1
                    default: others += 1
                    }
                    // Each device may have a few fields of its own.
                    guard devices <= parsedDeviceLimit, listEntries <= listEntryLimit, others <= otherFieldLimit + 8 * devices else {
                        throw .tooMany
                    }
                    guard case .content = field.value else { continue }
                    switch (level, field.number) {
                    case (.preferences, 1): try count(field.nested(in: reader), in: .device)
                    case (.device, 4):
                        // libprotobuf-c merges a repetition by a copy of the lists so far.
                        guard !hasFilters else { throw .tooMany }
                        hasFilters = true
                        try count(field.nested(in: reader), in: .filters)
                    default: break
                    }
                }
            }
        }
    }

    /// A device of a record.
    public struct Device: Hashable, Sendable {
        /// TokenType: 1 APNs, 2 Firebase. Other values are refused with UNSUPPORTED_TOKEN_TYPE: see ``platform``.
        public var tokenType: UInt32
        /// The device's identifier at the push service; not empty in a valid record.
        public var token: DeviceToken
        /// Unique in the record, 1 to ``InstallationID/maximumByteCount`` bytes.
        public var installationID: InstallationID
        /// nil: no notifications for this device, as with filters that are not enabled.
        public var filters: FilterSettings?

        /// - Parameters:
        ///   - tokenType: The number on the wire, including values that are not supported.
        ///   - token: The device's identifier at the push service.
        ///   - installationID: Unique in the record.
        ///   - filters: nil for no notifications.
        public init(tokenType: UInt32, token: DeviceToken, installationID: InstallationID, filters: FilterSettings?) {
            self.tokenType = tokenType
            self.token = token
            self.installationID = installationID
            self.filters = filters
        }

        /// Like ``init(tokenType:token:installationID:filters:)``, for one of the platforms.
        public init(platform: Platform, token: DeviceToken, installationID: InstallationID, filters: FilterSettings?) {
            self.init(tokenType: UInt32(platform.rawValue), token: token, installationID: installationID, filters: filters)
        }

        /// nil if the token type is neither APNs nor Firebase.
        public var platform: Platform? { Platform(tokenType: tokenType).flatMap { Platform.ofStatus.contains($0) ? $0 : nil } }
        public var isEnabled: Bool { filters?.isEnabled ?? false }

        init(_ message: Protobuf__V01__DeviceToken) throws(ProtobufError) {
            self.init(
                tokenType: message.token_type.rawValue, token: DeviceToken(bytes: try message.token.boundedUTF8()),
                installationID: InstallationID(bytes: try message.installation_id.boundedUTF8()),
                filters: message.filter_settings.map { FilterSettings($0.pointee) })
        }

        func fill(_ message: inout Protobuf__V01__DeviceToken, _ arena: ProtobufArena) {
            message.token_type = Protobuf__V01__DeviceToken__TokenType(rawValue: tokenType)
            message.token = arena.data(token.bytes)
            message.installation_id = arena.data(installationID.bytes)
            if let filters {
                message.filter_settings = arena.messages([filters], protobuf__v01__filter_settings__init) { $0.fill(&$1, arena) }?.pointee
            }
        }
    }

    /// The notification filters of a device, and the contacts that may have the access token.
    public struct FilterSettings: Hashable, Sendable {
        /// False: no notifications, and no row in answers to queries.
        public var isEnabled: Bool
        /// The access token sealed to each contact that may have it; empty if every key may. See ``V01/sealToken(_:from:to:)``. As received: raw
        /// bytes or hexadecimal digits.
        public var allowedKeyList: [[UInt8]]
        /// Hashes of chats, as received: raw bytes or hexadecimal digits.
        public var blockedChatList: [[UInt8]]

        /// - Parameters:
        ///   - isEnabled: Whether the device is notified at all.
        ///   - allowedKeyList: The access token sealed to each contact that may have it; empty if every key may.
        ///   - blockedChatList: SHA3-256 of the ids of chats without notifications.
        public init(isEnabled: Bool, allowedKeyList: [[UInt8]] = [], blockedChatList: [[UInt8]] = []) {
            self.isEnabled = isEnabled
            self.allowedKeyList = allowedKeyList
            self.blockedChatList = blockedChatList
        }

        init(_ message: Protobuf__V01__FilterSettings) {
            self.init(
                isEnabled: message.enabled != 0, allowedKeyList: byteLists(message.n_allowed_key_list, message.allowed_key_list),
                blockedChatList: byteLists(message.n_blocked_chat_list, message.blocked_chat_list))
        }

        func fill(_ message: inout Protobuf__V01__FilterSettings, _ arena: ProtobufArena) {
            message.enabled = isEnabled ? 1 : 0
            (message.n_allowed_key_list, message.allowed_key_list) = (allowedKeyList.count, arena.list(allowedKeyList))
            (message.n_blocked_chat_list, message.blocked_chat_list) = (blockedChatList.count, arena.list(blockedChatList))
        }
    }
}

extension ProtobufCBinaryData {
    /// Limit of each string in bytes of UTF-8.
    private static let stringByteLimit = 4096

    func boundedUTF8() throws(ProtobufError) -> [UInt8] {
        guard len <= Self.stringByteLimit else { throw .tooLong }
        return try utf8()
    }
}
