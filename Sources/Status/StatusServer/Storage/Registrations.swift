import Delivery
import Wire
package import Core
package import StatusProtocol
import StatusRules
package import Storage
package import Waku
import WakuCrypto

/// What can be asked of the stored registrations, and done to them.
package struct Registrations: Sendable {
    let sealer: Sealer

    /// - Parameter sealer: of the store.
    package init(_ sealer: Sealer) {
        self.sealer = sealer
    }

    static func device(_ row: Int64) -> DeviceID { DeviceID(StatusStorage.protocolNumber, row: row) }

    // MARK: One

    private static let findHead = Query(
        StatusStorage.registration,
        [
            .column(.id), .column(StatusStorage.version), .column(StatusStorage.message), .isPresent(StatusStorage.sealed),
            .column(StatusStorage.unfounded),
        ],
        where: [.equal(StatusStorage.keyHash), .equal(StatusStorage.installation)])
    private static let findContent = Query(
        StatusStorage.registration, [.id, StatusStorage.version, StatusStorage.changedAt, StatusStorage.sealed],
        where: [.equal(StatusStorage.keyHash), .equal(StatusStorage.installation)])

    static func headRead(_ key: RegistrationKey) -> Read {
        findHead(.bytes(key.keyHash.bytes), .bytes(key.installationID.bytes))
    }

    static func head(_ rows: [Row]) throws -> RegistrationHead? {
        try rows.first.map { row in
            RegistrationHead(
                id: try row.integer(0), version: try row.unsigned(1), message: try row.optionalInteger(2).map(MessageMark.init),
                isRegistered: try row.integer(3) != 0, isUnfounded: !row.isNull(4))
        }
    }

    /// What stands for an installation, without its content; nil when nothing ever was.
    package static func head(of key: RegistrationKey) -> StoreCommand<RegistrationHead?> {
        .find(headRead(key)) { .done(try head($0)) }
    }

    static func contentRead(_ key: RegistrationKey) -> Read {
        findContent(.bytes(key.keyHash.bytes), .bytes(key.installationID.bytes))
    }

    func content(_ rows: [Row], of key: RegistrationKey) throws -> (device: Int64, state: StoredState)? {
        guard let row = rows.first else { return nil }
        let version = try row.unsigned(1)
        guard let sealed = try row.optionalBytes(3) else { return (try row.integer(0), .tombstone(version: version)) }
        let stored = StoredRegistration(
            key: key, registration: try open(sealed, of: key, version: version), storedAt: Timestamp(rawValue: try row.integer(2)))
        return (try row.integer(0), .registered(stored))
    }

    /// What is stored for an installation; nil when nothing ever was.
    package func state(of key: RegistrationKey) -> StoreCommand<StoredState?> {
        .find(Self.contentRead(key)) { .done(try content($0, of: key)?.state) }
    }

    // MARK: Contents

    static func binding(_ key: RegistrationKey, _ version: UInt64) -> [Value] {
        [.bytes(key.keyHash.bytes), .integer(Int64(bitPattern: version)), .bytes(key.installationID.bytes)]
    }

    func open(_ sealed: [UInt8], of key: RegistrationKey, version: UInt64) throws -> PushNotificationRegistration {
        do {
            return try PushNotificationRegistration(
                parsing: try sealer.open(sealed, in: StatusStorage.registration, boundTo: Self.binding(key, version)))
        } catch is ProtobufError {
            throw UnexpectedValue()
        }
    }

    // MARK: Changes

    private static let insert = Mutation(
        StatusStorage.registration,
        .insert([
            StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform,
            StatusStorage.queryTopic, StatusStorage.publishedQueryTopic, StatusStorage.message, StatusStorage.sealed,
            StatusStorage.unfounded,
        ]))
    /// Its topics stay, and so do the pages of their indexes.
    private static let renew = Mutation(
        StatusStorage.registration,
        .update(
            [StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform, StatusStorage.message, StatusStorage.sealed],
            where: [.equal(.id), .equal(StatusStorage.version), .present(StatusStorage.sealed)]))
    private static let replace = Mutation(
        StatusStorage.registration,
        .update(
            [
                StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform, StatusStorage.queryTopic,
                StatusStorage.publishedQueryTopic, StatusStorage.message, StatusStorage.sealed, StatusStorage.unfounded,
            ], where: [.equal(.id), .equal(StatusStorage.version), .absent(StatusStorage.sealed)]))

    /// - Parameters:
    ///   - registration: what `bytes` say.
    ///   - bytes: the registration as it came. They are what is stored.
    ///   - key: whose.
    ///   - message: what it came with, if it may come again.
    ///   - head: what stands for the installation: the change rests on it.
    ///   - now: when.
    func store(
        _ registration: PushNotificationRegistration, bytes: [UInt8], as key: RegistrationKey, message: MessageMark? = nil,
        replacing head: RegistrationHead?, at now: Timestamp
    ) -> Change {
        let version = Value.integer(Int64(bitPattern: registration.version))
        let sealed = sealer.seal(bytes, in: StatusStorage.registration, boundTo: Self.binding(key, registration.version))
        let platform = Value(registration.platform.map { Int64($0.rawValue) })
        let time = Value.integer(now.rawValue)
        if let head, head.isRegistered {
            return Self.renew(version, time, platform, Value(message?.rawValue), sealed, .integer(head.id), head.storedVersion)
        }
        let tags = QueryTopics(of: key.keyHash)
        let topics = (Value.integer(Int64(tags.deployed.rawValue)), Value.integer(Int64(tags.published.rawValue)))
        if let head {
            return Self.replace(
                version, time, platform, topics.0, topics.1, Value(message?.rawValue), sealed, .null, .integer(head.id), head.storedVersion)
        }
        return Self.insert(
            .bytes(key.keyHash.bytes), .bytes(key.installationID.bytes), version, time, platform, topics.0, topics.1,
            Value(message?.rawValue), sealed, .null)
    }

    /// Stores a registration in the place of whatever stands for its installation.
    func store(
        _ registration: PushNotificationRegistration, bytes: [UInt8], as key: RegistrationKey, at now: Timestamp
    ) -> StoreCommand<Void> {
        Self.head(of: key).then { head in
            .change([store(registration, bytes: bytes, as: key, replacing: head, at: now)])
        }
    }

    private static let endings: [Column] = [
        StatusStorage.version, StatusStorage.changedAt, StatusStorage.message, StatusStorage.platform, StatusStorage.queryTopic,
        StatusStorage.publishedQueryTopic, StatusStorage.sealed,
    ]
    private static let end = Mutation(
        StatusStorage.registration, .update(endings, where: [.equal(.id), .equal(StatusStorage.version)]))

    /// Leaves only key hash, installation and version, and forgets what was waiting for the device, doubts about its token, and with a
    /// registrant's last installation the keys of its topics. When it never was registered, the row is marked as unfounded:
    /// ``forgetUnfounded(before:limit:)`` removes it.
    ///
    /// - Parameters:
    ///   - key: whose.
    ///   - version: of the tombstone.
    ///   - message: what it came with, if it may come again.
    ///   - head: what stands for the installation: the change rests on it.
    ///   - wasRegistered: it was, elsewhere; of what is stored here it is known.
    ///   - now: when.
    static func unregister(
        _ key: RegistrationKey, version: UInt64, message: MessageMark? = nil, replacing head: RegistrationHead?,
        wasRegistered: Bool = false,
        at now: Timestamp
    ) -> StoreCommand<Void> {
        let (version, time) = (Value.integer(Int64(bitPattern: version)), Value.integer(now.rawValue))
        guard let head else {
            return .change([
                insert(
                    .bytes(key.keyHash.bytes), .bytes(key.installationID.bytes), version, time, .null, .null, .null,
                    Value(message?.rawValue),
                    .null, wasRegistered ? .null : .integer(1))
            ])
        }
        let end = end(
            version, time, Value(message?.rawValue), .null, .null, .null, .null, .integer(head.id), head.storedVersion)
        return installationCount(of: key.keyHash).then { count in
            let isLast = count == (head.isRegistered ? 1 : 0)
            return .change([end] + DeliveryStorage.forget(device(head.id)) + (isLast ? [TopicKeyStorage.forget(key.keyHash)] : []))
        }
    }

    /// As ``unregister(_:version:message:replacing:wasRegistered:at:)``, whatever stands for the installation.
    package static func unregister(
        _ key: RegistrationKey, version: UInt64, message: MessageMark? = nil, wasRegistered: Bool = false, at now: Timestamp
    ) -> StoreCommand<Void> {
        head(of: key).then {
            unregister(key, version: version, message: message, replacing: $0, wasRegistered: wasRegistered, at: now)
        }
    }

    // MARK: Counts

    private static let countInForce = Query(
        StatusStorage.registration, [.count], where: [.equal(StatusStorage.keyHash), .present(StatusStorage.sealed)])
    private static let countUnfoundedOfKey = Query(
        StatusStorage.registration, [.count], where: [.equal(StatusStorage.keyHash), .present(StatusStorage.unfounded)])
    private static let countRegistered = Query(StatusStorage.registration, [.count], where: [.present(StatusStorage.queryTopic)])
    private static let countUnfounded = Query(StatusStorage.registration, [.count], where: [.equal(StatusStorage.unfounded)])

    private static func sum(_ reads: [Read]) -> StoreCommand<Int> {
        .read(reads) { found in .done(Int(try found.reduce(0) { try $0 + $1[0].integer(0) })) }
    }

    /// How many of a registrant's installations are in force.
    static func installationCount(of keyHash: KeyHash) -> StoreCommand<Int> { sum([countInForce(.bytes(keyHash.bytes))]) }

    /// How many rows a registrant takes up as far as limits count them: installations in force, and unfounded tombstones.
    static func countedInstallations(of keyHash: KeyHash) -> StoreCommand<Int> {
        sum([countInForce(.bytes(keyHash.bytes)), countUnfoundedOfKey(.bytes(keyHash.bytes))])
    }

    /// How many registrations are in force. Looks at all of them in an index: some 20 ms for a million.
    package static func registrationCount() -> StoreCommand<Int> { sum([countRegistered()]) }

    /// How many rows limits count: registrations in force, and unfounded tombstones. Looks at all of them in an index: some 20 ms for a million.
    static func countedRegistrations() -> StoreCommand<Int> { sum([countRegistered(), countUnfounded(.integer(1))]) }

    // MARK: Ends

    private static let findUnfounded = Query(
        StatusStorage.registration, [.id], where: [.equal(StatusStorage.unfounded), .less(StatusStorage.changedAt)],
        order: [.ascending(StatusStorage.changedAt)])
    private static let remove = Mutation(StatusStorage.registration, .delete(where: [.idAmong, .equal(StatusStorage.unfounded)]))

    /// Forgets tombstones of installations that were never registered, the oldest first.
    ///
    /// - Returns: How many were forgotten; when it is `limit`, there may be more.
    static func forgetUnfounded(before cutoff: Timestamp, limit: Int) -> StoreCommand<Int> {
        .find(findUnfounded(.integer(1), .integer(cutoff.rawValue), limit: limit)) { rows in
            let ids = try rows.map { try $0.integer(0) }
            return .change(ids.isEmpty ? [] : [remove(.integer(1), ids: ids)], ids.count)
        }
    }

    private static let findUnchanged = Query(
        StatusStorage.registration, [StatusStorage.keyHash, StatusStorage.installation],
        where: [.less(StatusStorage.changedAt), .present(StatusStorage.sealed)])
    private static let findEnding = Query(
        StatusStorage.registration, [.id, StatusStorage.version],
        where: [
            .equal(StatusStorage.keyHash), .equal(StatusStorage.installation), .present(StatusStorage.sealed),
            .less(StatusStorage.changedAt),
        ])

    /// Those in force that were neither registered nor renewed since then, the oldest rows first. Looks at all rows.
    static func registrations(unchangedSince time: Timestamp, limit: Int = 100_000) -> StoreCommand<[RegistrationKey]> {
        .find(findUnchanged(.integer(time.rawValue), limit: limit)) { rows in .done(rows.compactMap { try? RegistrationKey($0, at: 0) }) }
    }

    /// Ends a registration under the version that it has, unless it was renewed meanwhile; then false. What it holds is not looked at: a row
    /// that can't be opened ends as well.
    static func expire(_ key: RegistrationKey, unchangedSince time: Timestamp, at now: Timestamp) -> StoreCommand<Bool> {
        .find(
            findEnding(.bytes(key.keyHash.bytes), .bytes(key.installationID.bytes), .integer(time.rawValue))
        ) { rows in
            guard let row = rows.first else { return .done(false) }
            return unregister(key, version: try row.unsigned(1), at: now).map { true }
        }
    }
}

/// A row of a registration or tombstone, without its content.
package struct RegistrationHead: Sendable {
    let id: Int64
    package let version: UInt64
    /// What it came with.
    package let message: MessageMark?
    /// Not a tombstone.
    package let isRegistered: Bool
    /// A tombstone of an installation that was never registered.
    package let isUnfounded: Bool

    fileprivate var storedVersion: Value { .integer(Int64(bitPattern: version)) }
}

/// The first 8 bytes of a message's hash: enough to know that message again.
package struct MessageMark: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }

    package init(of hash: MessageHash) {
        rawValue = hash.bytes.prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }
}

extension RegistrationKey {
    /// Of the columns key_hash and installation, from `index` on.
    init(_ row: Row, at index: Int) throws {
        guard let keyHash = KeyHash(bytes: try row.bytes(index)) else { throw UnexpectedValue() }
        self.init(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(index + 1)))
    }
}
