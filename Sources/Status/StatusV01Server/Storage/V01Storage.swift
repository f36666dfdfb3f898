package import Delivery
package import Storage

/// The tables of version 0.1: records, their access tokens and devices, access tokens that they had, and final acknowledgements.
package enum V01Storage {
    /// The number that identifies the protocol in stored rows.
    package static let protocolNumber = ProtocolNumber(rawValue: 2)

    package static let part = StorePart(
        "status-v0.1", tables: [record, accessToken, device, answer, retiredToken],
        migrations: [
            [.create(record), .create(accessToken), .create(device(neverReusesIDs: false)), .create(answer)], [.neverReuseIDs(of: device)],
            [.create(retiredToken)],
        ])

    /// SHA3-256 of the account's compressed key.
    static let keyHash = Column("key_hash", .bytes)
    static let version = Column("version", .integer)

    // MARK: Records

    static let changedAt = Column("changed_at", .integer)
    /// The mark of the record's Register.
    static let mark = Column("mark", .integer, isOptional: true)
    /// Preferences as received.
    static let sealed = Column("sealed", .bytes, isOptional: true)
    /// The keyed hash of its access token.
    static let recordToken = Column("token", .bytes, isOptional: true)
    /// 1 for the tombstone of an account that was never registered here: deleted after 30 days.
    static let unfounded = Column("unfounded", .integer, isOptional: true)

    /// One row for each account ever registered or unregistered. A tombstone has only key hash and version.
    static let record = Table(
        "v01_record", columns: [keyHash, version, changedAt, mark, sealed, recordToken, unfounded], unique: [keyHash],
        indexes: [Index("v01_record_unfounded", on: [changedAt], where: .equal(unfounded, 1))],
        sealed: SealedColumn(sealed, boundTo: [keyHash, version], label: "v0.1 records"))

    // MARK: Access tokens

    /// The keyed hash of an access token.
    static let token = Column("token", .bytes)
    /// Maps access tokens to records. A separate table, so that no two records can have the same token.
    static let accessToken = Table("v01_access_token", columns: [token, keyHash], unique: [token])

    /// In nanoseconds.
    static let expiresAt = Column("expires_at", .integer)
    /// Access tokens that a record had, with its account: see ``Records/retire(_:of:at:)``. A separate table, because nodes of earlier releases take each row
    /// of ``accessToken`` for a token that selects a record.
    static let retiredToken = Table(
        "v01_retired_token", columns: [token, keyHash, expiresAt], unique: [token],
        indexes: [
            Index("v01_retired_token_account", on: [keyHash, expiresAt]), Index("v01_retired_token_expires", on: [expiresAt]),
        ])

    // MARK: Devices

    static let installation = Column("installation", .bytes)
    static let platform = Column("platform", .integer)
    static let sealedToken = Column("sealed", .bytes)
    /// The devices of registered records. Versions are those of the record. The sealed column holds the device token.
    ///
    /// gorush may report a dead token after its device was removed. The failure names the device by its row and version, so no other device may
    /// get that row.
    static let device = device(neverReusesIDs: true)

    private static func device(neverReusesIDs: Bool) -> Table {
        Table(
            "v01_device", columns: [keyHash, installation, version, platform, sealedToken], unique: [keyHash, installation],
            neverReusesIDs: neverReusesIDs,
            sealed: SealedColumn(sealedToken, boundTo: [keyHash, version, installation], label: "v0.1 devices"))
    }

    // MARK: Answers

    /// SHA3-256 of the Request.
    static let request = Column("request", .bytes)
    static let code = Column("code", .integer)
    static let at = Column("at", .integer)
    /// Final acknowledgements, so that a repeated request gets the same acknowledgement.
    static let answer = Table("v01_answer", columns: [request, code, at], unique: [request])
}
