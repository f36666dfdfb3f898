package import Core
package import WakuCrypto

/// The kinds of messages with separate limits.
package enum MessageClass: Hashable, Sendable {
    case registration
    case query
    case request
}

/// Bytes that a sender signed, by a hash that is seeded in each process.
package struct SignedContent: Hashable, Sendable {
    private let hash: Int

    /// - Parameter sender: nil if the message is unsigned.
    package init(_ bytes: [UInt8], by sender: PublicKey?) {
        var hasher = Hasher()
        hasher.combine(sender)
        hasher.combine(bytes)
        hash = hasher.finalize()
    }
}

/// Applies `Limits`. Checked before each expensive step.
public struct RateLimitTable: Sendable {
    /// The limit that was exceeded.
    public enum Refusal: String, Error, Hashable, Sendable, CaseIterable {
        case messagesBySender = "messages of a sender"
        case registrationsBySender = "registrations of a sender"
        case queriesBySender = "queries of a sender"
        case requestsBySender = "requests of a sender"
        case queriesByTarget = "queries about a registrant"
        case notificationsByTarget = "notifications for a device"
        case newRegistrations = "new registrations"
        case registrations = "registrations"
        case queries = "queries"
        case requests = "requests"
        case answerKiBByTarget = "KiB of answers about a registrant"
        case answerKiB = "KiB of answers"
        case wholeAnswersByTarget = "repeated long answers about a registrant"
        case notifications = "notifications"
        case installationsByKey = "installations of a key"
        case registrationCount = "registrations in force"
        case webPushDevicesByOrigin = "Web Push devices of a push service"
        case storeMiB = "MiB of the store"
        case denied = "key that may not register"
        /// Displaced from the queue of key derivations, or from the messages that wait for one.
        case topicKeys = "topic keys"
        /// Displaced from the room for incomplete messages.
        case segments = "segments"
        /// Not begun, because too many requests of its network waited or it had waited for too long.
        case httpRequests = "requests over HTTP"
        /// Displaced by another device of the account.
        case accountPlaces = "places of an account"

        /// The value of the label in metrics. With hyphens, it is the name of the limit's option.
        package var label: String {
            switch self {
            case .messagesBySender: "messages_by_sender"
            case .registrationsBySender: "registrations_by_sender"
            case .queriesBySender: "queries_by_sender"
            case .requestsBySender: "requests_by_sender"
            case .queriesByTarget: "queries_by_target"
            case .notificationsByTarget: "notifications_by_target"
            case .newRegistrations: "new_registrations"
            case .registrations: "registrations"
            case .queries: "queries"
            case .requests: "requests"
            case .answerKiBByTarget: "answer_kib_by_target"
            case .answerKiB: "answer_kib"
            case .wholeAnswersByTarget: "whole_answers_by_target"
            case .notifications: "notifications"
            case .installationsByKey: "installations_by_key"
            case .registrationCount: "registration_count"
            case .webPushDevicesByOrigin: "web_push_devices_by_origin"
            case .storeMiB: "store_mib"
            // An older name, which dashboards use.
            case .denied: "unwelcome"
            case .topicKeys: "topic_keys"
            case .segments: "segments"
            case .httpRequests: "http_requests"
            case .accountPlaces: "account_places"
            }
        }

        /// The name of the limit's option, if it has one.
        var optionName: String { label.replacing("_", with: "-") }
    }

    package let limits: Limits
    private var rates: [Refusal: RateLimiter] = [:]
    /// Totals that are divided by standing and payer, like all totals whose work has a payer.
    private var totals: [Refusal: FairBudget] = [:]
    private static let divided: Set<Refusal> = [.newRegistrations, .notifications, .answerKiB]
    /// KiB read from the store for answers.
    private var answerReads: FairBudget?
    /// KiB read for decisions: see ``reading(byteCount:for:by:at:)``.
    private var decisionReads: FairBudget?
    private var answerCredit = AnswerCredit()
    /// The latest charges for commands of the store, with the number of new devices that each counts. About 40 bytes per entry; at most twice as many
    /// entries are kept.
    var charged = GenerationalCache<ChargeID, Int>(capacity: 20_000)
    /// Of the latest messages: see ``isRepetition(of:)``.
    private var contents = GenerationalCache<SignedContent, Void>(capacity: 50_000)
    /// Whether the current message is a retry: see ``isRepetition(of:)``.
    var isRetry = false

    package init(_ limits: Limits) {
        self.limits = limits
        for (refusal, path, _) in Limits.rates {
            guard let limit = limits[keyPath: path] else { continue }
            if Self.divided.contains(refusal) {
                totals[refusal] = FairBudget(limit)
                if refusal == .answerKiB { answerReads = FairBudget(limit.times(Self.readsByAnswers)) }
            } else {
                rates[refusal] = RateLimiter(limit)
            }
        }
        if limits.notifications != nil { decisionReads = FairBudget(Self.decisionRead) }
    }

    /// Whether a message has content that its sender signed in an earlier one. Anyone can send such content again: with another timestamp, or in an
    /// envelope of another type, which the signature does not cover. So it must not use up the limits of the sender's new messages.
    ///
    /// Called once for each message, before it is admitted. A retry is not a repetition.
    package mutating func isRepetition(of content: SignedContent) -> Bool {
        !contents.insert(content) && !isRetry
    }

    /// Admits a message of any kind, or a segment.
    ///
    /// - Parameters:
    ///   - sender: nil if the message is unsigned: all unsigned messages count as those of one sender.
    ///   - isRepetition: repetitions of a sender's messages together have limits of their own.
    package mutating func message(from sender: PublicKey?, isRepetition: Bool = false, at now: Timestamp) -> Refusal? {
        take(.messagesBySender, Self.bucket(of: sender, isRepetition), at: now)
    }

    /// Admits a message of a known kind.
    ///
    /// - Parameter isRepetition: false for queries and requests: most of their senders are keys that sign one message.
    package mutating func message(
        _ kind: MessageClass, from sender: PublicKey?, isRepetition: Bool = false, at now: Timestamp
    ) -> Refusal? {
        let name = Self.bucket(of: sender, isRepetition)
        return switch kind {
        case .registration: take(.registrationsBySender, name, at: now) ?? take(.registrations, [], at: now)
        case .query: take(.queriesBySender, name, at: now) ?? take(.queries, [], at: now)
        case .request: take(.requestsBySender, name, at: now) ?? take(.requests, [], at: now)
        }
    }

    private static func bucket(of sender: PublicKey?, _ isRepetition: Bool) -> [UInt8] {
        (sender?.uncompressed ?? []) + (isRepetition ? [1] : [])
    }

    /// Admits a part of a query.
    ///
    /// - Parameter registrant: the protocol's hash of the registrant's key.
    package mutating func query(about registrant: [UInt8], at now: Timestamp) -> Refusal? {
        take(.queriesByTarget, registrant, at: now)
    }

    /// Admits rows about a registrant in an answer: paid by its queries (``AnswerCredit``), or as the first whole answer for some time.
    ///
    /// - Parameters:
    ///   - registrant: the protocol's hash of the registrant's key.
    ///   - queryByteCount: the registrant's part of the size of the query.
    package mutating func answer(
        byteCount: Int, about registrant: [UInt8], queryByteCount: Int = 512, _ standing: Standing = .stranger, at now: Timestamp
    ) -> Refusal? {
        if limits.wholeAnswersByTarget != nil,
            !answerCredit.pays(byteCount: byteCount, about: registrant, queryByteCount: queryByteCount, standing, at: now),
            let refusal = take(.wholeAnswersByTarget, registrant, at: now)
        {
            return refusal
        }
        return take(.answerKiBByTarget, registrant, cost: Self.kibibytes(byteCount), at: now)
    }

    /// Admits an answer to a query.
    package mutating func answer(byteCount: Int, for charge: Charge = .unattributed, at now: Timestamp) -> Refusal? {
        take(.answerKiB, by: charge, cost: Self.kibibytes(byteCount), at: now)
    }

    /// Reading a byte costs a fraction of answering with it.
    private static let readsByAnswers = 8

    /// KiB read for decisions on requests. They are made by the writer, which everything waits for: lists of short entries take 30 ms for 1 MiB.
    private static let decisionRead = RateLimit(8_192, per: .second, burst: 32_768)

    /// Admits reading stored content: for answers at most ``readsByAnswers`` times as much as is answered, for decisions a rate of its own.
    package mutating func reading(byteCount: Int, for purpose: ReadingBill.Purpose, by charge: Charge, at now: Timestamp) -> Refusal? {
        let cost = Self.kibibytes(byteCount)
        return switch purpose {
        case .answer: answerReads?.admits(charge.payer, charge.standing, cost: cost, at: now) ?? true ? nil : .answerKiB
        case .decision: decisionReads?.admits(charge.payer, charge.standing, cost: cost, at: now) ?? true ? nil : .notifications
        }
    }

    /// Admits a notification that passed all checks and filters. Rejected notifications do not count against the target's limit.
    ///
    /// - Parameters:
    ///   - device: bytes that identify the device within its protocol.
    ///   - charge: the owner of the device. Charged before the notification is stored.
    package mutating func notification(for device: [UInt8], by charge: Charge = .unattributed, at now: Timestamp) -> Refusal? {
        take(.notificationsByTarget, device, at: now) ?? take(.notifications, by: charge, at: now)
    }

    /// Admits a registration of an installation that is not registered now.
    ///
    /// - Parameters:
    ///   - installations: number of registered installations of the key.
    ///   - devices: number of devices that it registers.
    ///   - exhausted: the limit that leaves no room for it, if any.
    ///   - isCharged: whether the rate was charged by a former decision.
    ///   - charge: the device token of the registration.
    package mutating func newRegistration(
        installations: Int, devices: Int = 1, exhausted: Refusal? = nil, isCharged: Bool = false, by charge: Charge = .unattributed,
        at now: Timestamp
    ) -> Refusal? {
        if let limit = limits.installationsByKey, installations >= limit { return .installationsByKey }
        if let exhausted { return exhausted }
        return isCharged ? nil : take(.newRegistrations, by: charge, cost: devices, at: now)
    }

    // MARK: -

    /// Takes from a rate. Returns the limit if it is exceeded.
    ///
    /// - Parameter key: its bucket; empty for a rate of all senders together.
    private mutating func take(_ limit: Refusal, _ key: [UInt8], cost: Int = 1, at now: Timestamp) -> Refusal? {
        rates[limit]?.admits(key, cost: cost, at: now) ?? true ? nil : limit
    }

    /// Takes from a total that is divided fairly.
    private mutating func take(_ limit: Refusal, by charge: Charge, cost: Int = 1, at now: Timestamp) -> Refusal? {
        totals[limit]?.admits(charge.payer, charge.standing, cost: cost, at: now) ?? true ? nil : limit
    }

    private static func kibibytes(_ byteCount: Int) -> Int { max(1, (byteCount + 1023) / 1024) }
}
