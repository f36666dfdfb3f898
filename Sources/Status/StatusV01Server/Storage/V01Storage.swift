package import Delivery
package import Storage

/// The tables of version 0.1: records, their access tokens and devices, and acknowledgements that were given.
package enum V01Storage {
    /// In stored rows.
    package static let protocolNumber = ProtocolNumber(rawValue: 2)

    package static let part = StorePart("status-v0.1", tables: [record, accessToken, device, answer])

    /// SHA3-256 of the account's compressed key.
    static let keyHash = Column("key_hash", .bytes)
    static let version = Column("version", .integer)

    // MARK: Records

    static let changedAt = Column("changed_at", .integer)
    /// Of the Register that it came with.
    static let mark = Column("mark", .integer, isOptional: true)
    /// Preferences as they came.
    static let sealed = Column("sealed", .bytes, isOptional: true)
    /// The keyed hash of its access token.
    static let recordToken = Column("token", .bytes, isOptional: true)
    /// 1 for the tombstone of an account that was never registered here: it is forgotten after a while.
    static let unfounded = Column("unfounded", .integer, isOptional: true)

    /// One row for each account ever registered or unregistered. A tombstone has key hash and version, and none of the rest.
    static let record = Table(
        "v01_record", columns: [keyHash, version, changedAt, mark, sealed, recordToken, unfounded], unique: [keyHash],
        indexes: [Index("v01_record_unfounded", on: [changedAt], where: .equal(unfounded, 1))],
        sealed: SealedColumn(sealed, boundTo: [keyHash, version], label: "v0.1 records"))

    // MARK: Access tokens

    /// The keyed hash of an access token.
    static let token = Column("token", .bytes)
    /// Which record an access token selects: a table of its own, so that no two records can have the same one.
    static let accessToken = Table("v01_access_token", columns: [token, keyHash], unique: [token])

    // MARK: Devices

    static let installation = Column("installation", .bytes)
    static let platform = Column("platform", .integer)
    static let sealedToken = Column("sealed", .bytes)
    /// The devices of registered records. Versions are those of the record. The sealed column holds the device token.
    static let device = Table(
        "v01_device", columns: [keyHash, installation, version, platform, sealedToken], unique: [keyHash, installation],
        sealed: SealedColumn(sealedToken, boundTo: [keyHash, version, installation], label: "v0.1 devices"))

    // MARK: Answers

    /// SHA3-256 of the Request.
    static let request = Column("request", .bytes)
    static let code = Column("code", .integer)
    static let at = Column("at", .integer)
    /// How requests were acknowledged for good, so that the same request gets the same acknowledgement.
    static let answer = Table("v01_answer", columns: [request, code, at], unique: [request])
}
