import Core
import Foundation
import StatusProtocol
import StatusServer
import StatusV01Server
import Storage
import WakuCrypto

extension RegistrationsFile.Line {
    /// A record of version 0.1.
    struct V01Record: Codable {
        let keyHash: Data
        let version: UInt64
        let changedAt: Int64
        let preferences: Data?
        /// true or absent. Absent in files of earlier releases.
        let neverRegistered: Bool?
        /// The compressed public key of the identity with which it is registered; absent: that of the file.
        var identity: Data?
    }

    /// An access token that a record of version 0.1 had.
    struct V01RetiredToken: Codable {
        let token: Data
        /// As it is stored, with the mark of the identity.
        let keyHash: Data
        let expiresAt: Int64
        /// `Sealer.lookUpKeyMark` of the token.
        let key: Int64
    }
}

extension ProtocolLines {
    /// A record of version 0.1 has devices of several platforms.
    static let statusV01 = ProtocolLines(
        hasSeveralPlatforms: true,
        export: { store, filter, writer in
            let identities = try RowIdentities(store)
            try StatusV01Server.Records(store.sealer).forEach(in: store) { record in
                guard filter.isRegistered.map({ $0 == (record.preferences != nil) }) ?? true,
                    filter.changedBefore.map({ record.changedAt < $0 }) ?? true, filter.changedSince.map({ record.changedAt >= $0 }) ?? true
                else { return true }
                return writer.add {
                    try RegistrationsFile.Line(
                        v01: .init(
                            keyHash: Data(record.keyHash.bytes), version: record.version, changedAt: record.changedAt.rawValue,
                            preferences: record.preferences.map { Data($0) }, neverRegistered: record.neverRegistered ? true : nil,
                            identity: identities.key(with: record.keyHash.server)))
                }
            }
        },
        entry: { line, owner in
            guard let record = line.v01, let keyHash = V01.KeyHash(bytes: Array(record.keyHash)) else { return nil }
            if let bytes = record.preferences, (try? V01.Preferences(parsing: Array(bytes))) == nil { return .unparsable }
            let export = RecordExport(
                keyHash: keyHash, version: record.version, changedAt: Timestamp(rawValue: record.changedAt),
                preferences: record.preferences.map { Array($0) }, neverRegistered: record.neverRegistered == true)
            let named = record.identity.map { try? PublicKey(parsing: Array($0)) }
            guard let identity = named ?? owner else { return nil }
            return RegistrationsFile.Entry(byteCount: export.preferences?.count ?? 0) {
                StatusV01Server.Records($0).merge(export, with: identity, in: owner)
            }
        })

    /// Access tokens that records had: all of them, except with a filter for what is registered, since none is found by the record that had it.
    static let statusV01RetiredTokens = ProtocolLines(
        hasSeveralPlatforms: true,
        export: { store, filter, writer in
            guard filter.isRegistered != true else { return }
            let key = store.sealer.lookUpKeyMark
            try StatusV01Server.Records.forEachRetiredToken(in: store) { retired in
                writer.add {
                    RegistrationsFile.Line(
                        v01RetiredToken: .init(
                            token: Data(retired.token), keyHash: Data(retired.keyHash), expiresAt: retired.expiresAt, key: key))
                }
            }
        },
        entry: { line, _ in
            line.v01RetiredToken.map { retired in
                let export = (token: Array(retired.token), keyHash: Array(retired.keyHash), expiresAt: retired.expiresAt)
                return RegistrationsFile.Entry(byteCount: 0, lookUpKey: retired.key) { _ in StatusV01Server.Records.merge(export) }
            }
        })
}
