import Foundation
import StatusProtocol
import Core
import WakuCrypto

/// A record of the client's state, stored under one key. The machines change whole records.
///
/// A store may hold the records of several machines, with different prefixes; none touches those of another.
enum MachineRecord<Version: ClientVersion>: Hashable, Sendable {
    case own(Version.Own)
    case server(Version.Server)
    case registrant(RegistrantRecord)
    case message(MessageRecord)

    var key: RecordKey {
        switch self {
        case .own: .own
        case .server(let record): .server(record.server)
        case .registrant(let record): .registrant(record.registrant)
        case .message(let record): .message(record.messageID)
        }
    }

    /// The client's time when the record was stored; nil in other records than ``own(_:)`` of earlier releases.
    var storedAt: Timestamp? {
        switch self {
        case .own(let record): record.time
        case .server(let record): record.storedAt?.time
        case .registrant(let record): record.storedAt?.time
        case .message(let record): record.storedAt?.time
        }
    }

    /// The record with the time at which it is stored.
    func stored(at time: Timestamp) -> Self {
        switch self {
        case .own: return self
        case .server(var record):
            record.storedAt = StoredTime(time)
            return .server(record)
        case .registrant(var record):
            record.storedAt = StoredTime(time)
            return .registrant(record)
        case .message(var record):
            record.storedAt = StoredTime(time)
            return .message(record)
        }
    }

    static func name(of key: RecordKey) -> String { Version.recordPrefix + key.name }

    func encoded() throws -> [UInt8] {
        let encoder = JSONEncoder()
        let body =
            switch self {
            case .own(let record): try encoder.encode(record)
            case .server(let record): try encoder.encode(record)
            case .registrant(let record): try encoder.encode(record)
            case .message(let record): try encoder.encode(record)
            }
        return [format] + Array(body)
    }

    /// 2 with a Web Push device, so that releases which don't know them refuse the state as that of a later version, and not as damaged.
    private var format: UInt8 {
        if case .own(let own) = self, let own = own as? OwnRecord, own.storedProfile?.platform == .webPush { 2 } else { 1 }
    }

    /// - Throws: ``ClientStoreError`` with `damaged` or `newer`
    init(_ name: String, _ bytes: [UInt8]) throws(ClientStoreError) {
        guard let first = bytes.first, first <= latestFormat else {
            throw ClientStoreError(code: .newer, message: "the client's state was written by a later version: use that one")
        }
        let body = Data(bytes.dropFirst())
        let decoder = JSONDecoder()
        do {
            switch name.dropFirst(Version.recordPrefix.count).prefix(while: { $0 != "/" }) {
            case "own": self = .own(try decoder.decode(Version.Own.self, from: body))
            case "server": self = .server(try decoder.decode(Version.Server.self, from: body))
            case "registrant": self = .registrant(try decoder.decode(RegistrantRecord.self, from: body))
            case "message": self = .message(try decoder.decode(MessageRecord.self, from: body))
            default: throw CocoaError(.coderReadCorrupt)
            }
        } catch {
            // The decoder's error message may quote the record's contents.
            throw ClientStoreError(code: .damaged, message: "the client's state can't be read: its record \(name) is damaged")
        }
    }

    static func load(from store: any ClientStore) async throws(ClientStoreError) -> [Self] {
        var records: [Self] = []
        for (name, value) in try await store.load().sorted(by: { $0.key < $1.key }) where isName(name) {
            records.append(try Self(name, value))
        }
        return records
    }

    /// Whether a record of this name belongs to the machine. Those of the deployed protocol have no prefix.
    static func isName(_ name: String) -> Bool {
        Version.recordPrefix.isEmpty ? !name.hasPrefix(Version01.recordPrefix) : name.hasPrefix(Version.recordPrefix)
    }
}

/// The records from which a machine continues.
struct RecordsByKind<Version: ClientVersion> {
    /// The client's time when it last stored something; nil at the very first start.
    let time: Timestamp?
    var own: Version.Own?
    var servers: [Version.Server] = []
    var registrants: [RegistrantRecord] = []
    var messages: [MessageRecord] = []

    init(_ records: [MachineRecord<Version>]) {
        time = records.compactMap(\.storedAt).max()
        for record in records {
            switch record {
            case .own(let record): own = record
            case .server(let record): servers.append(record)
            case .registrant(let record): registrants.append(record)
            case .message(let record): messages.append(record)
            }
        }
    }
}

/// The latest format of the records' values, in their first byte.
private let latestFormat: UInt8 = 2

enum RecordKey: Hashable, Sendable {
    case own
    case server(PublicKey)
    case registrant(PublicKey)
    case message([UInt8])

    fileprivate var name: String {
        switch self {
        case .own: "own"
        case .server(let server): "server/" + hexString(server.compressed)
        case .registrant(let registrant): "registrant/" + hexString(registrant.compressed)
        case .message(let id): "message/" + hexString(id)
        }
    }
}

/// The client's own settings and the state of its installation, independent of servers.
struct OwnRecord: OwnState {
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
    var lead: Int64?

    var profile: DeviceProfile? {
        get { storedProfile?.profile }
        set { storedProfile = newValue.map(StoredProfile.init) }
    }

    var serverKeys: [PublicKey] { servers.map(\.key) }

    var advertisesAt: Timestamp? {
        get { nextAdvertisement }
        set { nextAdvertisement = newValue }
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
