import Delivery
import Core
package import NodeMetrics
package import StatusProtocol
package import StatusRules
package import Storage

/// Reads and changes stored records.
package struct Records: Sendable {
    let sealer: Sealer
    /// Reports records that can't be parsed; nil: nothing is reported.
    private let errors: RepeatedErrors?

    package init(_ sealer: Sealer, errors: RepeatedErrors? = nil) {
        self.sealer = sealer
        self.errors = errors
    }

    static func device(_ row: Int64) -> DeviceID { DeviceID(V01Storage.protocolNumber, row: row) }

    // MARK: One record

    /// A row of a record or tombstone, without its content.
    struct Row: Sendable {
        let id: Int64
        let head: V01.RecordHead
        /// false for a tombstone.
        let isRegistered: Bool
        /// The size of the sealed content in bytes.
        let storedByteCount: Int
        /// Whether this is a tombstone of an account that was never registered.
        let neverRegistered: Bool
        /// The keyed hash of its access token.
        let token: [UInt8]?
        let changedAt: Timestamp

        var storedVersion: Value { .integer(Int64(bitPattern: head.version)) }
    }

    private static let findRow = Query(
        V01Storage.record,
        [
            .column(.id), .column(V01Storage.version), .column(V01Storage.mark), .byteCount(V01Storage.sealed),
            .column(V01Storage.unfounded), .column(V01Storage.recordToken), .column(V01Storage.changedAt),
        ], where: [.equal(V01Storage.keyHash)])
    private static let findContent = Query(
        V01Storage.record, [V01Storage.version, V01Storage.sealed], where: [.equal(V01Storage.keyHash)])

    static func rowRead(_ keyHash: V01.KeyHash) -> Read { findRow(.bytes(keyHash.stored)) }

    static func row(_ rows: [Storage.Row]) throws -> Row? {
        try rows.first.map { row in
            Row(
                id: try row.integer(0),
                head: V01.RecordHead(
                    version: try row.unsigned(1), mark: try row.optionalInteger(2).map(V01.RegisterMark.init)),
                isRegistered: !row.isNull(3), storedByteCount: Int(try row.optionalInteger(3) ?? 0), neverRegistered: !row.isNull(4),
                token: try row.optionalBytes(5), changedAt: Timestamp(rawValue: try row.integer(6)))
        }
    }

    static func contentRead(_ keyHash: V01.KeyHash, byteCount: Int = 0) -> Read {
        var read = findContent(.bytes(keyHash.stored))
        read.expectedByteCount = byteCount
        return read
    }

    /// The decrypted content; nil for a tombstone, if there is no row, and if it can't be parsed.
    func content(_ rows: [Storage.Row], of keyHash: V01.KeyHash) throws -> V01.Preferences? {
        guard let row = rows.first, let sealed = try Self.sealedContent(rows) else { return nil }
        return parse(try open(sealed, of: keyHash, version: try row.unsigned(0)))
    }

    /// The encrypted content; nil for a tombstone, and if there is no row.
    static func sealedContent(_ rows: [Storage.Row]) throws -> [UInt8]? { try rows.first?.optionalBytes(1) }

    /// The stored record of an account; nil for a tombstone, if there is no row, and if it can't be parsed.
    package func preferences(of keyHash: V01.KeyHash) -> StoreCommand<V01.Preferences?> {
        .find(Self.contentRead(keyHash)) { .done(try content($0, of: keyHash)) }
    }

    /// The row of an account without its content; nil if there is none.
    package static func head(of keyHash: V01.KeyHash) -> StoreCommand<(head: V01.RecordHead, isRegistered: Bool)?> {
        .find(rowRead(keyHash)) { rows in .done(try row(rows).map { ($0.head, $0.isRegistered) }) }
    }

    // MARK: Contents

    static func binding(_ keyHash: V01.KeyHash, _ version: UInt64) -> [Value] {
        [.bytes(keyHash.stored), .integer(Int64(bitPattern: version))]
    }

    func open(_ sealed: [UInt8], of keyHash: V01.KeyHash, version: UInt64) throws -> [UInt8] {
        try sealer.open(sealed, in: V01Storage.record, boundTo: Self.binding(keyHash, version))
    }

    /// nil if the parser refuses the record. Records are stored as received, so an earlier release may have stored one that this release refuses:
    /// its account counts as not registered, and the database as whole.
    func parse(_ payload: [UInt8]) -> V01.Preferences? {
        do throws(ProtobufError) {
            return try V01.Preferences(parsing: payload)
        } catch {
            errors?.log("failed to parse a stored record", reason: "\(error)")
            return nil
        }
    }

    /// The keyed hash by which the record of an access token is looked up, at one identity of the node.
    func tokenHash(_ token: AccessToken, at server: ServerMark?) -> Value {
        .bytes(sealer.lookUpHash(of: (server?.storedPrefix ?? []) + token.bytes, in: V01Storage.accessToken.name))
    }

    private static let findOwner = Query(V01Storage.accessToken, [V01Storage.keyHash], where: [.equal(V01Storage.token)])

    /// Reads the row of the record that an access token selects.
    func ownerRead(_ token: AccessToken, at server: ServerMark?) -> Read { Self.findOwner(tokenHash(token, at: server)) }

    static func owner(_ rows: [Storage.Row]) throws -> V01.KeyHash? {
        try rows.first.flatMap { V01.KeyHash(stored: try $0.bytes(0)) }
    }

    // MARK: Devices

    private static let findDevices = Query(
        V01Storage.device, [.id, V01Storage.installation], where: [.equal(V01Storage.keyHash)])

    static func devicesRead(_ keyHash: V01.KeyHash) -> Read { findDevices(.bytes(keyHash.stored)) }

    static func devices(_ rows: [Storage.Row]) throws -> [InstallationID: Int64] {
        try rows.reduce(into: [:]) { $0[InstallationID(bytes: try $1.bytes(1))] = try $1.integer(0) }
    }

    static func deviceBinding(_ keyHash: V01.KeyHash, version: UInt64, installation: InstallationID) -> [Value] {
        binding(keyHash, version) + [.bytes(installation.bytes)]
    }
}
