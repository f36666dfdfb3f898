import Core
import Foundation
import StatusProtocol
import StatusServer
import Storage
import Waku

extension RegistrationsFile.Line {
    struct Record: Codable {
        let keyHash: Data
        let installation: Data
        let version: UInt64
        let changedAt: Int64
        let registration: Data?
        /// true or absent. Absent in files of earlier releases.
        let neverAsked: Bool?
    }
}

extension RegistrationsFile.Entry {
    static func registration(_ record: RegistrationRecord) -> RegistrationsFile.Entry {
        RegistrationsFile.Entry(byteCount: record.registration?.count ?? 0) { StatusServer.Registrations($0).merge(record) }
    }
}

extension ProtocolLines {
    static let status = ProtocolLines(
        hasSeveralPlatforms: false,
        export: { store, filter, writer in
            var export = LineExport()
            try StatusServer.Registrations(store.sealer).forEachRecord(filter, in: store) { record in
                export.add {
                    try writer.add(
                        RegistrationsFile.Line(
                            record: .init(
                                keyHash: Data(record.key.keyHash.bytes), installation: Data(record.key.installationID.bytes),
                                version: record.version, changedAt: record.changedAt.rawValue,
                                registration: record.registration.map { Data($0) }, neverAsked: record.isNeverAsked ? true : nil)))
                }
            }
            try export.finish()
        },
        entry: { line in
            guard let record = line.record, let keyHash = KeyHash(bytes: Array(record.keyHash)) else { return nil }
            return .registration(
                RegistrationRecord(
                    key: RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: Array(record.installation))),
                    version: record.version, changedAt: Timestamp(rawValue: record.changedAt),
                    registration: record.registration.map { Array($0) }, isNeverAsked: record.neverAsked == true))
        })
}
