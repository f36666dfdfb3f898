import Delivery
package import Core
package import NodeMetrics
package import StatusProtocol
import StatusRules
package import Storage
package import Waku
import WakuCrypto

/// Reads and changes stored registrations.
package struct Registrations: Sendable {
    let sealer: Sealer
    /// Reports registrations that can't be parsed; nil: nothing is reported.
    private let errors: RepeatedErrors?

    package init(_ sealer: Sealer, errors: RepeatedErrors? = nil) {
        self.sealer = sealer
        self.errors = errors
    }

    static func device(_ row: Int64) -> DeviceID { DeviceID(StatusStorage.protocolNumber, row: row) }

    // MARK: One

    private static let headOutputs: [Query.Output] = [
        .column(.id), .column(StatusStorage.version), .column(StatusStorage.message), .byteCount(StatusStorage.sealed),
        .column(StatusStorage.unfounded), .column(StatusStorage.neverAsked), .column(StatusStorage.platform),
        .column(StatusStorage.webPushOrigin),
    ]
    private static let findHead = Query(
        StatusStorage.registration, headOutputs, where: [.equal(StatusStorage.keyHash), .equal(StatusStorage.installation)])
    private static let findHeadAndContent = Query(
        StatusStorage.registration, headOutputs + [.small(StatusStorage.sealed, byteLimit: smallByteCount)],
        where: [.equal(StatusStorage.keyHash), .equal(StatusStorage.installation)])
    private static let findContent = Query(
        StatusStorage.registration,
        [.id, StatusStorage.version, StatusStorage.changedAt, StatusStorage.sealed, StatusStorage.neverAsked],
        where: [.equal(StatusStorage.keyHash), .equal(StatusStorage.installation)])

    private static let findSmallContent = Query(
        StatusStorage.registration,
        [
            .column(.id), .column(StatusStorage.version), .column(StatusStorage.changedAt),
            .small(StatusStorage.sealed, byteLimit: smallByteCount), .column(StatusStorage.neverAsked), .byteCount(StatusStorage.sealed),
        ],
        where: [.equal(StatusStorage.keyHash), .equal(StatusStorage.installation)])

    /// Sealed content up to this size in bytes is read with its row.
    static let smallByteCount = 2 << 10

    static func headRead(_ key: RegistrationKey) -> Read {
        findHead(.bytes(key.keyHash.bytes), .bytes(key.storedInstallation))
    }

    /// The head, and small content for ``received(_:of:)``.
    static func headAndContentRead(_ key: RegistrationKey) -> Read {
        findHeadAndContent(.bytes(key.keyHash.bytes), .bytes(key.storedInstallation))
    }

    /// The registration if a message stored it, so that its grant was proved; nil for a tombstone, an imported registration, and a large one: a
    /// proof takes less time.
    func received(_ rows: [Row], of key: RegistrationKey) -> PushNotificationRegistration? {
        guard let row = rows.first, !row.isNull(2), let sealed = try? row.optionalBytes(Self.headOutputs.count),
            let version = try? row.unsigned(1)
        else { return nil }
        return try? open(sealed, of: key, version: version)
    }

    static func head(_ rows: [Row]) throws -> RegistrationHead? {
        try rows.first.map { row in
            RegistrationHead(
                id: try row.integer(0), version: try row.unsigned(1), message: try row.optionalInteger(2).map(MessageMark.init),
                isRegistered: !row.isNull(3), storedByteCount: Int(try row.optionalInteger(3) ?? 0), neverRegistered: !row.isNull(4),
                isNeverAsked: !row.isNull(5),
                isWebPush: try row.optionalInteger(6) == Int64(Platform.webPush.rawValue), webPushOrigin: try row.optionalInteger(7))
        }
    }

    /// The row of an installation without its content; nil if there is none.
    package static func head(of key: RegistrationKey) -> StoreCommand<RegistrationHead?> {
        .find(headRead(key)) { .done(try head($0)) }
    }

    static func contentRead(_ key: RegistrationKey, byteCount: Int = 0) -> Read {
        var read = findContent(.bytes(key.keyHash.bytes), .bytes(key.storedInstallation))
        read.expectedByteCount = byteCount
        return read
    }

    /// The content if it is small, and its size for ``storedByteCount(_:)``.
    static func smallContentRead(_ key: RegistrationKey) -> Read {
        findSmallContent(.bytes(key.keyHash.bytes), .bytes(key.storedInstallation))
    }

    /// The size of the sealed content in bytes; 0 for a tombstone, and if there is no row.
    static func storedByteCount(_ rows: [Row]) throws -> Int { Int(try rows.first?.optionalInteger(5) ?? 0) }

    /// The content of a row; nil if there is none. A registration that can't be parsed counts as a tombstone.
    func content(_ rows: [Row], of key: RegistrationKey) throws -> (device: Int64, state: StoredState, isNeverAsked: Bool)? {
        guard let row = rows.first else { return nil }
        let (version, isNeverAsked) = (try row.unsigned(1), !row.isNull(4))
        guard let registration = try row.optionalBytes(3).flatMap({ try open($0, of: key, version: version) }) else {
            return (try row.integer(0), .tombstone(version: version), isNeverAsked)
        }
        let stored = StoredRegistration(key: key, registration: registration, storedAt: Timestamp(rawValue: try row.integer(2)))
        return (try row.integer(0), .registered(stored), isNeverAsked)
    }

    /// The stored state of an installation; nil if there is none.
    package func state(of key: RegistrationKey) -> StoreCommand<StoredState?> {
        .find(Self.contentRead(key)) { .done(try content($0, of: key)?.state) }
    }

    // MARK: Contents

    static func binding(_ key: RegistrationKey, _ version: UInt64) -> [Value] {
        [.bytes(key.keyHash.bytes), .integer(Int64(bitPattern: version)), .bytes(key.storedInstallation)]
    }

    /// nil if the parser refuses the registration. Registrations are stored as received, so an earlier release may have stored one that this release
    /// refuses: its installation counts as not registered, and the database as whole.
    func open(_ sealed: [UInt8], of key: RegistrationKey, version: UInt64) throws -> PushNotificationRegistration? {
        parse(try sealer.open(sealed, in: StatusStorage.registration, boundTo: Self.binding(key, version)))
    }

    func parse(_ bytes: [UInt8]) -> PushNotificationRegistration? {
        do throws(ProtobufError) {
            return try PushNotificationRegistration(parsing: bytes)
        } catch {
            errors?.log("failed to parse a stored registration", reason: "\(error)")
            return nil
        }
    }

    // MARK: Changes

    private static let insert = Mutation(
        StatusStorage.registration,
        .insert([
            StatusStorage.keyHash, StatusStorage.installation, StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform,
            StatusStorage.queryTopic, StatusStorage.publishedQueryTopic, StatusStorage.message, StatusStorage.sealed,
            StatusStorage.unfounded, StatusStorage.neverAsked, StatusStorage.webPushKey, StatusStorage.webPushOrigin,
        ]))
    /// Updates a registration without its topics, so that their indexes are not written.
    private static let renew = Mutation(
        StatusStorage.registration,
        .update(
            [
                StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform, StatusStorage.message, StatusStorage.sealed,
                StatusStorage.webPushKey, StatusStorage.webPushOrigin,
            ],
            where: [.equal(.id), .equal(StatusStorage.version), .present(StatusStorage.sealed)]))
    private static let replace = Mutation(
        StatusStorage.registration,
        .update(
            [
                StatusStorage.version, StatusStorage.changedAt, StatusStorage.platform, StatusStorage.queryTopic,
                StatusStorage.publishedQueryTopic, StatusStorage.message, StatusStorage.sealed, StatusStorage.unfounded,
                StatusStorage.neverAsked, StatusStorage.webPushKey, StatusStorage.webPushOrigin,
            ], where: [.equal(.id), .equal(StatusStorage.version), .absent(StatusStorage.sealed)]))

    /// Stores a registration. One that is not enabled deletes the device's pending notifications.
    ///
    /// - Parameters:
    ///   - registration: the decoded `bytes`.
    ///   - bytes: the registration as received, which is stored.
    ///   - message: the mark of its message, if the message may be delivered again.
    ///   - head: the current row of the installation; the change fails if the row has changed.
    ///   - wasAsked: whether someone has asked for the installation at another server.
    func store(
        _ registration: PushNotificationRegistration, bytes: [UInt8], as key: RegistrationKey, message: MessageMark? = nil,
        replacing head: RegistrationHead?, wasAsked: Bool = false, at now: Timestamp
    ) -> [Change] {
        let version = Value.integer(Int64(bitPattern: registration.version))
        let sealed = sealer.seal(bytes, in: StatusStorage.registration, boundTo: Self.binding(key, registration.version))
        let platform = Value(registration.platform.map { Int64($0.rawValue) })
        let time = Value.integer(now.rawValue)
        let subscription = registration.subscription
        let webPushKey = Value(subscription?.vapidKey.map(VAPIDKey.mark))
        let origin = Value(subscription.map(originMark))
        if let head, head.isRegistered {
            let renewal = Self.renew(
                version, time, platform, Value(message?.rawValue), sealed, webPushKey, origin, .integer(head.id), head.storedVersion)
            return [renewal] + (registration.enabled ? [] : DeliveryStorage.forget(Self.device(head.id)))
        }
        let tags = QueryTopics(of: key.keyHash)
        let topics = (Value.integer(Int64(tags.deployed.rawValue)), Value.integer(Int64(tags.published.rawValue)))
        // Stays marked as asked for.
        let isNeverAsked = !wasAsked && head.map { $0.isNeverAsked || $0.neverRegistered } ?? true
        let neverAsked = isNeverAsked ? StatusStorage.NeverAsked.registered : .null
        if let head {
            return [
                Self.replace(
                    version, time, platform, topics.0, topics.1, Value(message?.rawValue), sealed, .null, neverAsked, webPushKey, origin,
                    .integer(head.id), head.storedVersion)
            ]
        }
        return [
            Self.insert(
                .bytes(key.keyHash.bytes), .bytes(key.storedInstallation), version, time, platform, topics.0, topics.1,
                Value(message?.rawValue), sealed, .null, neverAsked, webPushKey, origin)
        ]
    }

    /// Stores a registration, replacing any row of its installation.
    func store(
        _ registration: PushNotificationRegistration, bytes: [UInt8], as key: RegistrationKey, at now: Timestamp
    ) -> StoreCommand<Void> {
        Self.head(of: key).then { head in
            .change(store(registration, bytes: bytes, as: key, replacing: head, at: now))
        }
    }

    private static let endings: [Column] = [
        StatusStorage.version, StatusStorage.changedAt, StatusStorage.message, StatusStorage.platform, StatusStorage.queryTopic,
        StatusStorage.publishedQueryTopic, StatusStorage.sealed, StatusStorage.neverAsked, StatusStorage.webPushKey,
        StatusStorage.webPushOrigin,
    ]
    private static let end = Mutation(
        StatusStorage.registration, .update(endings, where: [.equal(.id), .equal(StatusStorage.version)]))
    private static let displace = Mutation(
        StatusStorage.registration,
        .update(endings, where: [.equal(.id), .equal(StatusStorage.version), .equal(StatusStorage.neverAsked)]))

    /// Turns a row into a tombstone: only key hash, installation and version remain. Deletes the device's pending notifications and token doubts,
    /// and with a registrant's last installation its topic keys. A tombstone of an installation that was never registered is marked as
    /// unfounded, and deleted later: see ``unfounded``.
    ///
    /// - Parameters:
    ///   - message: the mark of its message, if the message may be delivered again.
    ///   - head: the current row of the installation, nil if there is none; the change fails if the row has changed.
    ///   - wasRegistered: whether the installation was registered at another server. Used only if there is no row.
    ///   - isNeverAsked: whether no one has asked for the installation at another server. Used only if there is no row.
    static func unregister(
        _ key: RegistrationKey, version: UInt64, message: MessageMark? = nil, replacing head: RegistrationHead?,
        wasRegistered: Bool = false, isNeverAsked: Bool = false, at now: Timestamp
    ) -> StoreCommand<Void> {
        let (version, message) = (Value.integer(Int64(bitPattern: version)), Value(message?.rawValue))
        guard let head else {
            return .change([
                insert(
                    .bytes(key.keyHash.bytes), .bytes(key.storedInstallation), version, .integer(now.rawValue), .null, .null, .null,
                    message, .null, wasRegistered ? .null : .integer(1), isNeverAsked ? StatusStorage.NeverAsked.ended : .null, .null, .null
                )
            ])
        }
        return leave(key, head, by: ending(end, of: head, version: version, message: message, at: now))
    }

    /// - Parameter others: the values of the mutation's further conditions.
    private static func ending(
        _ mutation: Mutation, of head: RegistrationHead, version: Value, message: Value, where others: [Value] = [], at now: Timestamp
    ) -> Change {
        let neverAsked = head.isNeverAsked ? StatusStorage.NeverAsked.ended : .null
        let values: [Value] = [version, .integer(now.rawValue), message, .null, .null, .null, .null, neverAsked, .null, .null]
        return mutation.change(values + [.integer(head.id), head.storedVersion] + others)
    }

    /// Applies the change, and deletes the device's and the registrant's rows in other tables.
    private static func leave(_ key: RegistrationKey, _ head: RegistrationHead, by change: Change) -> StoreCommand<Void> {
        installationCount(of: key.keyHash).then { count in
            let isLast = count == (head.isRegistered ? 1 : 0)
            return .change([change] + DeliveryStorage.forget(device(head.id)) + (isLast ? [TopicKeyStorage.forget(key.keyHash)] : []))
        }
    }

    /// As ``unregister(_:version:message:replacing:wasRegistered:isNeverAsked:at:)``, for any current row of the installation. A higher version of
    /// it stays.
    package static func unregister(
        _ key: RegistrationKey, version: UInt64, message: MessageMark? = nil, wasRegistered: Bool = false, at now: Timestamp
    ) -> StoreCommand<Void> {
        head(of: key).then {
            unregister(
                key, version: max(version, $0?.version ?? 0), message: message, replacing: $0, wasRegistered: wasRegistered, at: now)
        }
    }

    /// Unregisters an installation, keeping its version. Does nothing and returns false if it has another version by now: another node may have
    /// committed a renewal since this one read the row.
    static func end(_ key: RegistrationKey, version: UInt64, at now: Timestamp) -> StoreCommand<Bool> {
        head(of: key).then { head in
            guard let head, head.isRegistered, head.version == version else { return .done(false) }
            return unregister(key, version: version, replacing: head, at: now).map { true }
        }
    }

    // MARK: Counts

    private static let countInForce = Query(
        StatusStorage.registration, [.count], where: [.equal(StatusStorage.queryTopic), .equal(StatusStorage.keyHash)],
        index: StatusStorage.registrantIndexName)
    private static let findUnfoundedOfKey = Query(
        StatusStorage.registration, [.column(StatusStorage.unfounded)], where: [.equal(StatusStorage.keyHash)])
    private static let countRegistered = Query(StatusStorage.registration, [.count], where: [.present(StatusStorage.queryTopic)])
    private static let countUnfounded = Query(StatusStorage.registration, [.count], where: [.hasValue(StatusStorage.unfounded, 1)])

    private static func sum(_ reads: [Read]) -> StoreCommand<Int> {
        .read(reads) { found in .done(Int(try found.reduce(0) { try $0 + $1[0].integer(0) })) }
    }

    /// The tag of a registrant's topic.
    static func topicValue(of keyHash: KeyHash) -> Value { .integer(Int64(TopicTag(of: StatusTopics.query(keyHash)).rawValue)) }

    private static func countInForce(_ keyHash: KeyHash) -> Read { countInForce(topicValue(of: keyHash), .bytes(keyHash.bytes)) }

    /// Number of registered installations of a registrant.
    static func installationCount(of keyHash: KeyHash) -> StoreCommand<Int> { sum([countInForce(keyHash)]) }

    /// Number of a registrant's rows that limits count: registered installations and unfounded tombstones; all rows if there are as many as `limit`.
    static func countedInstallations(of keyHash: KeyHash, limit: Int) -> StoreCommand<Int> {
        .read([countInForce(keyHash), findUnfoundedOfKey(.bytes(keyHash.bytes), limit: limit)]) { found in
            guard found[1].count < limit else { return .done(limit) }
            return .done(Int(try found[0][0].integer(0)) + found[1].count { !$0.isNull(0) })
        }
    }

    /// Number of rows that limits count: registrations and unfounded tombstones. Scans an index: about 20 ms per million.
    static func countedRegistrations() -> StoreCommand<Int> { sum([countRegistered(), countUnfounded()]) }

    // MARK: Web Push

    private static let countAtOrigin = Query(StatusStorage.registration, [.count], where: [.equal(StatusStorage.webPushOrigin)])

    /// A keyed hash of the origin of a subscription's endpoint: the database tells which devices are of one push service, and not of which.
    func originMark(of subscription: PushSubscription) -> Int64 {
        sealer.lookUpMark(of: Array(subscription.origin.description.utf8), in: "registration_web_push_origin")
    }

    /// Number of registered devices of a push service. Scans an index: about 2 ms per 100,000.
    ///
    /// - Parameter origin: see ``originMark(of:)``.
    static func deviceCount(ofOrigin origin: Int64) -> StoreCommand<Int> { sum([countAtOrigin(.integer(origin))]) }

    // MARK: Never asked

    private static let findNeverAsked = Query(
        StatusStorage.registration, [.id, StatusStorage.keyHash, StatusStorage.installation], where: [.equal(StatusStorage.neverAsked)],
        order: [.ascending(StatusStorage.changedAt)])
    /// Without tombstones: nodes of an earlier release keep the mark of a registration that they end.
    private static let findDisplaceable = Query(
        StatusStorage.registration, [.id, StatusStorage.keyHash, StatusStorage.installation],
        where: [.equal(StatusStorage.neverAsked), .present(StatusStorage.sealed)], order: [.ascending(StatusStorage.changedAt)])
    private static let endNeverAsked = Mutation(
        StatusStorage.registration, .updateAny([StatusStorage.neverAsked], where: [.equal(.id), .equal(StatusStorage.neverAsked)]))
    /// The number of registrations among which one to displace is chosen.
    private static let displaceableCount = 16

    /// Records that someone asked for a registration.
    static func asked(_ row: Int64) -> Change { endNeverAsked(.null, .integer(row), StatusStorage.NeverAsked.registered) }

    /// The registration that makes room for another: of those that no one has asked for, the one that was stored or renewed longest ago. Changes
    /// nothing: ``displace(_:at:)``.
    ///
    /// - Parameters:
    ///   - isAsked: whether someone has asked for a registration though its row does not say so yet.
    ///   - isSpared: whether registrations of other registrants are displaced before those of this one.
    /// - Returns: nil if there is none.
    static func displaceable(
        isAsked: @escaping @Sendable (Int64) -> Bool = { _ in false }, isSpared: @escaping @Sendable (KeyHash) -> Bool = { _ in false }
    ) -> StoreCommand<(key: RegistrationKey, head: RegistrationHead)?> {
        .find(findDisplaceable(StatusStorage.NeverAsked.registered, limit: displaceableCount)) { rows in
            let keys = try rows.filter { !isAsked(try $0.integer(0)) }.map { try RegistrationKey($0, at: 1) }
            guard let key = keys.first(where: { !isSpared($0.keyHash) }) ?? keys.first else { return .done(nil) }
            return .find(headRead(key)) { rows in .done(try head(rows).map { (key, $0) }) }
        }
    }

    /// Turns a registration that no one has asked for into a tombstone. Fails if it was displaced, renewed or asked for meanwhile: then the command
    /// runs again.
    static func displace(_ registration: (key: RegistrationKey, head: RegistrationHead), at now: Timestamp) -> StoreCommand<Void> {
        let head = registration.head
        return leave(
            registration.key, head,
            by: ending(
                displace, of: head, version: head.storedVersion, message: .null, where: [StatusStorage.NeverAsked.registered], at: now))
    }

    private static let countNeverAsked = Query(StatusStorage.registration, [.count], where: [.equal(StatusStorage.neverAsked)])
    private static let removeNeverAsked = Mutation(
        StatusStorage.registration, .delete(where: [.idAmong, .equal(StatusStorage.neverAsked)]))

    /// Number of tombstones of registrations that no one had asked for. Scans an index: about 20 ms per million.
    static func neverAskedTombstoneCount() -> StoreCommand<Int> { sum([countNeverAsked(StatusStorage.NeverAsked.ended)]) }

    /// Deletes tombstones of registrations that no one had asked for, oldest first.
    ///
    /// - Returns: the number of rows found; if it equals `limit`, there may be more.
    static func forgetNeverAsked(limit: Int) -> StoreCommand<Int> {
        .find(findNeverAsked(StatusStorage.NeverAsked.ended, limit: limit)) { rows in
            let ids = try rows.map { try $0.integer(0) }
            return .change(ids.isEmpty ? [] : [removeNeverAsked(StatusStorage.NeverAsked.ended, ids: ids)], ids.count)
        }
    }

    // MARK: Ends

    /// Tombstones of installations that were never registered.
    static let unfounded = UnfoundedTombstones(
        StatusStorage.registration, marked: StatusStorage.unfounded, changedAt: StatusStorage.changedAt)

    private static let findUnchanged = Query(
        StatusStorage.registration, [StatusStorage.keyHash, StatusStorage.installation],
        where: [.less(StatusStorage.changedAt), .present(StatusStorage.sealed)])
    private static let findEnding = Query(
        StatusStorage.registration, [.id, StatusStorage.version],
        where: [
            .equal(StatusStorage.keyHash), .equal(StatusStorage.installation), .present(StatusStorage.sealed),
            .less(StatusStorage.changedAt),
        ])

    /// Registrations that have not been renewed since `time`, oldest rows first. Reads all rows.
    static func registrations(unchangedSince time: Timestamp) -> StoreCommand<[RegistrationKey]> {
        .find(findUnchanged(.integer(time.rawValue), limit: 100_000)) { rows in .done(rows.compactMap { try? RegistrationKey($0, at: 0) }) }
    }

    /// Unregisters an installation, keeping its version; does nothing and returns false if it was renewed in the meantime. The content is not
    /// read, so rows that cannot be decrypted expire as well.
    static func expire(_ key: RegistrationKey, unchangedSince time: Timestamp, at now: Timestamp) -> StoreCommand<Bool> {
        .find(
            findEnding(.bytes(key.keyHash.bytes), .bytes(key.storedInstallation), .integer(time.rawValue))
        ) { rows in
            guard let row = rows.first else { return .done(false) }
            return end(key, version: try row.unsigned(1), at: now)
        }
    }
}

/// A row of a registration or tombstone, without its content.
package struct RegistrationHead: Sendable {
    let id: Int64
    package let version: UInt64
    /// The mark of the message that stored the row.
    package let message: MessageMark?
    /// false for a tombstone.
    package let isRegistered: Bool
    /// The size of the sealed content in bytes.
    let storedByteCount: Int
    /// Whether this is a tombstone of an installation that was never registered.
    package let neverRegistered: Bool
    /// Whether no one has asked for the installation.
    package let isNeverAsked: Bool
    /// Whether a Web Push device is registered.
    let isWebPush: Bool
    /// See ``Registrations/originMark(of:)``.
    let webPushOrigin: Int64?

    /// Whether the device counts as one of a push service already. If the row is of a release that did not store origins, it is taken for one.
    func isDevice(ofOrigin origin: Int64) -> Bool { isWebPush && (webPushOrigin ?? origin) == origin }

    fileprivate var storedVersion: Value { .integer(Int64(bitPattern: version)) }
}

/// The first 8 bytes of a message's hash: enough to recognize the message when it is delivered again.
package struct MessageMark: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }

    package init(of hash: MessageHash) {
        rawValue = hash.bytes.prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }
}

extension RegistrationKey {
    /// Reads the columns key_hash and installation, starting at `index`.
    init(_ row: Row, at index: Int) throws {
        guard let keyHash = KeyHash(bytes: try row.bytes(index)) else { throw UnexpectedValue() }
        self.init(keyHash: keyHash, storedInstallation: try row.bytes(index + 1))
    }
}
