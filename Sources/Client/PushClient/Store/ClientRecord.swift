import Foundation
import StatusProtocol
import Core
import Waku
import WakuCrypto

/// A record of the client's state, stored under one key. The machines change whole records.
enum ClientRecord: StoredRecord, Hashable {
    case own(OwnRecord)
    case server(ServerRegistration)
    case registrant(RegistrantRecord)
    case message(MessageRecord)

    enum Key: Hashable, Sendable {
        case own
        case server(PublicKey)
        case registrant(PublicKey)
        case message([UInt8])
    }

    var key: Key {
        switch self {
        case .own: .own
        case .server(let record): .server(record.server)
        case .registrant(let record): .registrant(record.registrant)
        case .message(let record): .message(record.messageID)
        }
    }

    static func name(of key: Key) -> String { RecordCoding.name(of: key) }
    func encoded() throws -> [UInt8] { try RecordCoding.encode(self) }
}

/// The client's own settings and the state of its installation, independent of servers.
struct OwnRecord: Codable, Hashable, Sendable {
    @Stored var installationID: InstallationID
    var isReceiving = false
    var isSending = false
    var servers: [PushServer] = []
    var storedProfile: StoredProfile?
    var content: RegistrationContent?
    /// An encoded ChatIdentity to advertise.
    @StoredBytes var chatIdentity: [UInt8] = []
    /// The latest time of the next advertisement.
    @Stored var nextAdvertisement: Timestamp? = nil
    /// The client's time when this was written. It never goes back, even if the system clock does.
    @Stored var time: Timestamp

    var profile: DeviceProfile? {
        get { storedProfile?.profile }
        set { storedProfile = newValue.map(StoredProfile.init) }
    }

    init(installationID: InstallationID, time: Timestamp) {
        _installationID = Stored(wrappedValue: installationID)
        _time = Stored(wrappedValue: time)
    }
}

/// The registration sent to every server, before grant and encryption. Changes with each change of the profile.
struct RegistrationContent: Codable, Hashable, Sendable {
    /// Increases with every change, and never decreases.
    var version: UInt64
    @Stored var accessToken: AccessToken
    /// The token sealed to each contact, when only contacts receive it.
    @Stored var allowedKeyList: [StoredData]
}

/// The name of a record in the store, and the encoding of its value.
enum RecordCoding {
    private static let format: UInt8 = 1

    static func name(of key: ClientRecord.Key) -> String {
        switch key {
        case .own: "own"
        case .server(let server): "server/" + hexString(server.compressed)
        case .registrant(let registrant): "registrant/" + hexString(registrant.compressed)
        case .message(let id): "message/" + hexString(id)
        }
    }

    /// - Throws: `EncodingError`
    static func encode(_ record: ClientRecord) throws -> [UInt8] {
        let encoder = JSONEncoder()
        let body =
            switch record {
            case .own(let record): try encoder.encode(record)
            case .server(let record): try encoder.encode(record)
            case .registrant(let record): try encoder.encode(record)
            case .message(let record): try encoder.encode(record)
            }
        return [format] + Array(body)
    }

    /// - Throws: ``ClientStoreError`` with `damaged` or `newer`
    static func decode(_ name: String, _ bytes: [UInt8]) throws(ClientStoreError) -> ClientRecord {
        guard let first = bytes.first, first <= format else {
            throw ClientStoreError(code: .newer, message: "the client's state was written by a later version: use that one")
        }
        let body = Data(bytes.dropFirst())
        let decoder = JSONDecoder()
        do {
            switch name.prefix(while: { $0 != "/" }) {
            case "own": return .own(try decoder.decode(OwnRecord.self, from: body))
            case "server": return .server(try decoder.decode(ServerRegistration.self, from: body))
            case "registrant": return .registrant(try decoder.decode(RegistrantRecord.self, from: body))
            case "message": return .message(try decoder.decode(MessageRecord.self, from: body))
            default: break
            }
        } catch {}
        // The decoder's error message may quote the record's contents.
        throw ClientStoreError(code: .damaged, message: "the client's state can't be read: its record \(name) is damaged")
    }
}

extension PushServer: Codable {
    private enum CodingKeys: String, CodingKey {
        case key, dialect, vapidKey
    }

    /// Reads the form that ``encode(to:)`` writes.
    ///
    /// - Throws: `DecodingError`, also for a key that is not on the curve.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let key = try container.decode(Stored<PublicKey>.self, forKey: .key).wrappedValue
        self.init(
            key: key, dialect: try container.decodeIfPresent(Dialect.self, forKey: .dialect),
            vapidKey: try container.decodeIfPresent(String.self, forKey: .vapidKey))
    }

    /// Writes `key`, compressed, in Base64 in JSON, and `dialect` unless it is nil. Stored states depend on this form.
    ///
    /// - Throws: `EncodingError`
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Stored(wrappedValue: key), forKey: .key)
        try container.encodeIfPresent(dialect, forKey: .dialect)
        try container.encodeIfPresent(vapidKey, forKey: .vapidKey)
    }
}
