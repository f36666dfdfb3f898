package import Delivery
package import Storage

/// The tables of the Status protocol: registrations, topic keys and final answers.
package enum StatusStorage {
    /// The number that identifies the protocol in stored rows.
    package static let protocolNumber = ProtocolNumber(rawValue: 1)

    package static let part = StorePart(
        "status", tables: [registration, topicKey, answer],
        migrations: [
            [.create(registration(with: [], [])), .create(topicKey), .create(answer)],
            [.addColumn(neverAsked, to: registration), .createIndex(neverAskedIndex, on: registration)],
            [.addColumn(webPushKey, to: registration), .createIndex(webPushKeyIndex, on: registration)],
            [.addColumn(webPushOrigin, to: registration), .createIndex(webPushOriginIndex, on: registration)],
            [.createIndex(registrantIndex, on: registration)],
            [.createIndex(platformIndex, on: registration)],
        ])

    // MARK: Registrations

    static let keyHash = Column("key_hash", .bytes)
    static let installation = Column("installation", .bytes)
    static let version = Column("version", .integer)
    static let changedAt = Column("changed_at", .integer)
    static let platform = Column("platform", .integer, isOptional: true)
    /// First 4 bytes of Keccak-256 of the topic string.
    static let queryTopic = Column("query_topic", .integer, isOptional: true)
    static let publishedQueryTopic = Column("published_query_topic", .integer, isOptional: true)
    /// The PushNotificationRegistration as received.
    static let sealed = Column("sealed", .bytes, isOptional: true)
    /// The mark of the registration's message: ``MessageMark``.
    static let message = Column("message", .integer, isOptional: true)
    /// 1 for the tombstone of an installation that was never registered here: deleted after 30 days.
    static let unfounded = Column("unfounded", .integer, isOptional: true)

    /// ``NeverAsked`` for an installation that no query was about and no notification was for; null: there was one, or it was registered before a
    /// release with this column.
    static let neverAsked = Column("never_asked", .integer, isOptional: true)
    private static let neverAskedIndex = Index("registration_never_asked", on: [neverAsked, changedAt], where: .present(neverAsked))

    /// The values of ``neverAsked``; must not change.
    enum NeverAsked {
        static let registered = Value.integer(1)
        /// A tombstone. Only the latest are kept.
        static let ended = Value.integer(2)
    }

    /// `VAPIDKey.mark(of:)` of the key that a Web Push subscription was made for; null for subscriptions that name none, for other platforms and
    /// tombstones, and in rows of releases without this column.
    static let webPushKey = Column("web_push_key", .integer, isOptional: true)
    private static let webPushKeyIndex = Index("registration_web_push_key", on: [webPushKey], where: .present(webPushKey))

    /// ``Registrations/originMark(of:)``, by which devices of a push service are counted; null for other platforms and tombstones, and in rows of
    /// releases without this column.
    static let webPushOrigin = Column("web_push_origin", .integer, isOptional: true)
    private static let webPushOriginIndex = Index("registration_web_push_origin", on: [webPushOrigin], where: .present(webPushOrigin))

    /// The registrations of a registrant, without tombstones: a registrant may have any number of them. Keys of registrants can be chosen so that many
    /// topics have the same tag.
    private static let registrantIndex = Index(registrantIndexName, on: [queryTopic, keyHash], where: .present(queryTopic))
    static let registrantIndexName = "registration_registrant"

    /// For figures: each node counts the devices of all.
    private static let platformIndex = Index("registration_platform", on: [platform])

    /// One row for each installation ever registered or unregistered. A tombstone has neither content, platform nor topics.
    static let registration = registration(
        with: [neverAsked, webPushKey, webPushOrigin],
        [neverAskedIndex, webPushKeyIndex, webPushOriginIndex, registrantIndex, platformIndex])

    private static func registration(with columns: [Column], _ indexes: [Index]) -> Table {
        Table(
            "registration",
            columns: [
                keyHash, installation, version, changedAt, platform, queryTopic, publishedQueryTopic, sealed, message, unfounded,
            ] + columns, unique: [keyHash, installation],
            indexes: [
                Index(queryTopicIndex, on: [queryTopic], where: .present(queryTopic)),
                Index(publishedQueryTopicIndex, on: [publishedQueryTopic], where: .present(publishedQueryTopic)),
                Index("registration_unfounded", on: [changedAt], where: .equal(unfounded, 1)),
            ] + indexes, sealed: SealedColumn(sealed, boundTo: [keyHash, version, installation], label: "registrations"))
    }
    static let queryTopicIndex = "registration_query_topic"
    static let publishedQueryTopicIndex = "registration_published_query_topic"

    // MARK: Topic keys

    /// 32 bytes, bound to the topic string.
    static let sealedKey = Column("sealed", .bytes)
    /// Symmetric keys of query topics, by the first 8 bytes of Keccak-256 of the topic string.
    static let topicKey = Table(
        "topic_key", columns: [sealedKey], sealed: SealedColumn(cached: sealedKey, boundTo: .text, label: "topic keys"))

    // MARK: Answers

    /// 32 bytes that identify the message.
    static let answered = Column("message", .bytes)
    /// One byte for each part of the answer.
    static let codes = Column("codes", .bytes)
    static let at = Column("at", .integer)
    /// Final answers, so that a repeated message gets the same answer.
    static let answer = Table("answer", columns: [answered, codes, at], unique: [answered])
}
