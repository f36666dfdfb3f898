import Core
import Foundation
import StatusProtocol
import StatusRules
import StatusServer
import Storage
import Waku
import WakuCrypto

extension RegistrationsFile.Line {
    struct Record: Codable {
        let keyHash: Data
        let installation: Data
        let version: UInt64
        let changedAt: Int64
        let registration: Data?
        /// true or absent. Absent in files of earlier releases.
        let neverAsked: Bool?
        /// true or absent. Absent in files of earlier releases.
        let neverRegistered: Bool?
        /// The compressed public key of the identity with which it is registered; absent: that of the file.
        var identity: Data?
    }
}

extension RegistrationsFile.Entry {
    /// - Parameters:
    ///   - identity: the identity with which it is registered.
    ///   - owner: the identity of the file and of the database.
    static func registration(_ record: RegistrationRecord, with identity: PublicKey, in owner: PublicKey) -> RegistrationsFile.Entry {
        RegistrationsFile.Entry(byteCount: record.registration?.count ?? 0) {
            StatusServer.Registrations($0).merge(record, with: identity, in: owner)
        }
    }
}

/// The identities with which the rows of a database are registered, by their marks.
struct RowIdentities {
    /// nil: the database has served one identity only.
    private let marks: ServerMarks?

    /// - Throws: `StoreError`
    init(_ store: any Store) throws {
        let known = try store.read(StoreIdentities.all())
        marks = known.first.map { ServerMarks(known: known, identity: $0) }
    }

    /// The compressed public key; nil: that of the database.
    ///
    /// - Throws: ``CommandFailure`` for the mark of an identity that is not recorded: the row would become one of the database's identity.
    func key(with mark: ServerMark?) throws -> Data? {
        let identity = marks?.identity(with: mark)
        guard identity != nil || mark == nil else {
            throw CommandFailure(
                .data,
                "a registration is of an identity that the database does not name: run the daemon with all its identities first")
        }
        return identity.map { Data($0.compressed) }
    }
}

extension ProtocolLines {
    static let status = ProtocolLines(
        hasSeveralPlatforms: false,
        export: { store, filter, writer in
            let identities = try RowIdentities(store)
            try StatusServer.Registrations(store.sealer).forEachRecord(filter, in: store) { record in
                writer.add {
                    try RegistrationsFile.Line(
                        record: .init(
                            keyHash: Data(record.key.keyHash.bytes), installation: Data(record.key.installationID.bytes),
                            version: record.version, changedAt: record.changedAt.rawValue,
                            registration: record.registration.map { Data($0) }, neverAsked: record.isNeverAsked ? true : nil,
                            neverRegistered: record.neverRegistered ? true : nil,
                            identity: identities.key(with: record.key.server)))
                }
            }
        },
        entry: { line, owner in
            guard let record = line.record, let keyHash = KeyHash(bytes: Array(record.keyHash)) else { return nil }
            if let bytes = record.registration, (try? PushNotificationRegistration(parsing: Array(bytes))) == nil { return .unparsable }
            let found = RegistrationRecord(
                key: RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: Array(record.installation))),
                version: record.version, changedAt: Timestamp(rawValue: record.changedAt),
                registration: record.registration.map { Array($0) }, isNeverAsked: record.neverAsked == true,
                neverRegistered: record.neverRegistered == true)
            guard let identity = record.identity.map({ Array($0) }) else { return .registration(found, with: owner, in: owner) }
            guard let key = try? PublicKey(parsing: identity) else { return nil }
            return .registration(found, with: key, in: owner)
        })
}
