public import StatusProtocol
public import Waku
public import WakuCrypto

/// Applies ``Limits``, as a value: asked before each step that costs something.
public struct Admission: Sendable {
    /// What was exceeded.
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
        case installationsByKey = "installations of a key"
        case registrationCount = "registrations in force"
        case denied = "key that may not register"
    }

    /// Of all together there is one bucket.
    private struct All: Hashable, Sendable {}

    private struct Device: Hashable, Sendable {
        /// The registrant's hash.
        let registrant: [UInt8]
        let installationID: InstallationID
    }

    public let limits: Limits
    private var messagesBySender: RateLimiter<PublicKey>?
    private var registrationsBySender: RateLimiter<PublicKey>?
    private var queriesBySender: RateLimiter<PublicKey>?
    private var requestsBySender: RateLimiter<PublicKey>?
    /// By the registrant's hash, of whichever protocol.
    private var queriesByTarget: RateLimiter<[UInt8]>?
    private var notificationsByTarget: RateLimiter<Device>?
    private var newRegistrations: RateLimiter<All>?
    private var registrations: RateLimiter<All>?
    private var queries: RateLimiter<All>?
    private var requests: RateLimiter<All>?
    private var answerKiBByTarget: RateLimiter<[UInt8]>?
    private var answerKiB: RateLimiter<All>?

    public init(_ limits: Limits) {
        self.limits = limits
        messagesBySender = limits.messagesBySender.map { RateLimiter($0) }
        registrationsBySender = limits.registrationsBySender.map { RateLimiter($0) }
        queriesBySender = limits.queriesBySender.map { RateLimiter($0) }
        requestsBySender = limits.requestsBySender.map { RateLimiter($0) }
        queriesByTarget = limits.queriesByTarget.map { RateLimiter($0) }
        notificationsByTarget = limits.notificationsByTarget.map { RateLimiter($0) }
        newRegistrations = limits.newRegistrations.map { RateLimiter($0) }
        registrations = limits.registrations.map { RateLimiter($0) }
        queries = limits.queries.map { RateLimiter($0) }
        requests = limits.requests.map { RateLimiter($0) }
        answerKiBByTarget = limits.answerKiBByTarget.map { RateLimiter($0) }
        answerKiB = limits.answerKiB.map { RateLimiter($0) }
    }

    /// A message whose signer is known, and nothing else of it yet.
    public mutating func message(from signer: PublicKey, at now: Timestamp) -> Refusal? {
        Self.take(signer, from: &messagesBySender, at: now) ? nil : .messagesBySender
    }

    /// An envelope that tells what it is.
    ///
    /// - Parameters:
    ///   - kind: What it asks for.
    ///   - sender: nil when it is from nobody: then only the limits for all together count.
    ///   - now: When it came.
    public mutating func message(_ kind: MessageKind, from sender: PublicKey?, at now: Timestamp) -> Refusal? {
        switch kind {
        case .registration:
            guard Self.take(sender, from: &registrationsBySender, at: now) else { return .registrationsBySender }
            guard Self.take(All(), from: &registrations, at: now) else { return .registrations }
        case .query:
            guard Self.take(sender, from: &queriesBySender, at: now) else { return .queriesBySender }
            guard Self.take(All(), from: &queries, at: now) else { return .queries }
        case .request:
            guard Self.take(sender, from: &requestsBySender, at: now) else { return .requestsBySender }
            guard Self.take(All(), from: &requests, at: now) else { return .requests }
        case .registrationResponse, .queryResponse, .response: break
        }
        return nil
    }

    /// Part of a query.
    public mutating func query(about registrant: KeyHash, at now: Timestamp) -> Refusal? {
        query(aboutHash: registrant.bytes, at: now)
    }

    /// Part of a query.
    ///
    /// - Parameter registrant: The hash by which the protocol names registrants.
    public mutating func query(aboutHash registrant: [UInt8], at now: Timestamp) -> Refusal? {
        Self.take(registrant, from: &queriesByTarget, at: now) ? nil : .queriesByTarget
    }

    /// Rows about one registrant in an answer.
    public mutating func answer(byteCount: Int, about registrant: KeyHash, at now: Timestamp) -> Refusal? {
        answer(byteCount: byteCount, aboutHash: registrant.bytes, at: now)
    }

    /// Rows about one registrant in an answer.
    ///
    /// - Parameter registrant: The hash by which the protocol names registrants.
    public mutating func answer(byteCount: Int, aboutHash registrant: [UInt8], at now: Timestamp) -> Refusal? {
        Self.take(registrant, from: &answerKiBByTarget, cost: Self.kibibytes(byteCount), at: now) ? nil : .answerKiBByTarget
    }

    /// An answer to a query.
    public mutating func answer(byteCount: Int, at now: Timestamp) -> Refusal? {
        Self.take(All(), from: &answerKiB, cost: Self.kibibytes(byteCount), at: now) ? nil : .answerKiB
    }

    /// Part of a request, which passed all its owner's checks and filters: what does not costs its target nothing.
    public mutating func notification(for device: RegistrationKey, at now: Timestamp) -> Refusal? {
        notification(forHash: device.keyHash.bytes, device.installationID, at: now)
    }

    /// As ``notification(for:at:)``.
    ///
    /// - Parameter registrant: The hash by which the protocol names registrants.
    public mutating func notification(
        forHash registrant: [UInt8], _ installationID: InstallationID, at now: Timestamp
    ) -> Refusal? {
        let device = Device(registrant: registrant, installationID: installationID)
        return Self.take(device, from: &notificationsByTarget, at: now) ? nil : .notificationsByTarget
    }

    /// An installation that is not registered at present.
    ///
    /// - Parameters:
    ///   - installations: of its key, in force.
    ///   - count: of all registrations in force.
    public mutating func newRegistration(installations: Int, count: Int, at now: Timestamp) -> Refusal? {
        if let limit = limits.installationsByKey, installations >= limit { return .installationsByKey }
        if let limit = limits.registrationCount, count >= limit { return .registrationCount }
        return Self.take(All(), from: &newRegistrations, at: now) ? nil : .newRegistrations
    }

    private static func take(_ sender: PublicKey?, from limiter: inout RateLimiter<PublicKey>?, at now: Timestamp) -> Bool {
        guard let sender else { return true }
        return limiter?.admits(sender, at: now) ?? true
    }

    private static func take<Key>(_ key: Key, from limiter: inout RateLimiter<Key>?, cost: Int = 1, at now: Timestamp) -> Bool {
        limiter?.admits(key, cost: cost, at: now) ?? true
    }

    private static func kibibytes(_ byteCount: Int) -> Int { max(1, (byteCount + 1023) / 1024) }
}
