package import Core

/// Prevents an operator's mistake from removing all registrations: when too many tokens fail for the same reason, none of these failures counts.
///
/// With a wrong certificate, environment or Firebase project, APNs and Firebase report the same error for every token as for a dead one. So failures
/// are compared with the posts to the same platform, APNs topic and service in the last hour. Failures for the same reason do not count when there
/// are
///
/// - at least ten owners of failed tokens, and
/// - failures of more than a fifth of the posted tokens, either in the hour or in their batch.
///
/// In an hour, a mistake can thus cost at most the tokens that are removed before those of a tenth owner fail for the same reason.
///
/// Clients choose the topics, so only a hundred are counted separately and the others together. Topics without posts for an hour are forgotten.
package struct FailureGuard: Sendable {
    package struct Configuration: Sendable {
        /// The counted time, in ``slotCount`` slots; the oldest slot is dropped as a whole. It is long because a hook reports failures singly, and a
        /// small node posts few notifications.
        package var window: Duration = .seconds(3600)
        package let slotCount = 12
        /// The number of owners whose tokens fail for the same reason from which these failures may be ignored. One dead token is ordinary, and all
        /// of a batch of one. Owners are counted, not tokens, because a mistake of the operator concerns all owners, and one can register many dead
        /// tokens.
        package let minimumOwnerCount = 10
        /// The share of posted tokens above which failures are ignored. That of uninstalled apps stays at a few percent, because each token is
        /// removed at its first failure.
        package let failureShare = 0.2
        package var scopeLimit = 100

        package init() {}
    }

    /// The devices that are notified with the same certificate, key or project.
    package struct CredentialScope: Hashable, Sendable {
        package let platform: Platform
        /// For Web Push the origin of the push service. nil for Firebase, and for the topics and origins beyond the limit.
        package let topic: String?
        /// The service of Session devices, which use other certificates and projects than Status; nil for Status.
        package let service: PushService?

        package init(origin: WebPushOrigin) {
            self.init(platform: .webPush, anyTopic: origin.description, service: nil)
        }

        package init(platform: Platform, topic: String, service: PushService? = nil) {
            self.init(platform: platform, anyTopic: platform == .apn ? topic : nil, service: service)
        }

        fileprivate init(platform: Platform, anyTopic topic: String?, service: PushService?) {
            self.platform = platform
            self.topic = topic
            self.service = service
        }

        /// Of all topics that are not counted separately.
        fileprivate var rest: CredentialScope { CredentialScope(platform: platform, anyTopic: nil, service: service) }
    }

    /// A failure of one token.
    package struct Failure: Sendable {
        fileprivate let kind: Kind
        /// A hash of whoever registered the token.
        fileprivate let owner: Int

        package init(credentialScope: CredentialScope, reason: FailureReason, owner: Int) {
            kind = Kind(credentialScope: credentialScope, reason: reason)
            self.owner = owner
        }
    }

    /// Failures that are compared with each other.
    fileprivate struct Kind: Hashable, Sendable {
        let credentialScope: CredentialScope
        let reason: FailureReason
    }

    private struct Failures {
        var count = 0
        /// At most ``Configuration/minimumOwnerCount``.
        var owners: Set<Int> = []

        mutating func add(_ failure: Failure, ownerLimit: Int) {
            count += 1
            if owners.count < ownerLimit { owners.insert(failure.owner) }
        }

        mutating func add(_ other: Failures) {
            count += other.count
            owners.formUnion(other.owners)
        }
    }

    private struct Tally {
        var posted = 0
        var failed: [FailureReason: Failures] = [:]
    }

    private struct Slot {
        let number: Int64
        var tally = Tally()
    }

    private let configuration: Configuration
    /// The slots of each credentialScope, oldest first.
    private var slots: [CredentialScope: [Slot]] = [:]

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Counts tokens that gorush accepted.
    package mutating func posted(_ counts: [CredentialScope: Int], at now: Timestamp) {
        for (credentialScope, count) in counts { change(credentialScope, now) { $0.posted += count } }
    }

    /// Counts failures and returns for each whether it counts against its token.
    ///
    /// - Parameters:
    ///   - failures: all failures of a batch, or all that a hook reported together.
    ///   - batch: the number of tokens posted in their batch, already counted by ``posted(_:at:)``; empty when a hook reported them.
    package mutating func judge(_ failures: [Failure], of batch: [CredentialScope: Int] = [:], at now: Timestamp) -> [Bool] {
        let ownerLimit = configuration.minimumOwnerCount
        var alike: [Kind: Failures] = [:]
        for failure in failures {
            alike[failure.kind, default: Failures()].add(failure, ownerLimit: ownerLimit)
            change(failure.kind.credentialScope, now) {
                $0.failed[failure.kind.reason, default: Failures()].add(failure, ownerLimit: ownerLimit)
            }
        }
        let isHeldOff = alike.map { kind, failures in
            let lately = tally(of: kind.credentialScope, now)
            return (
                kind,
                isTooMany(lately.failed[kind.reason, default: Failures()], of: lately.posted)
                    || batch[kind.credentialScope].map { isTooMany(failures, of: $0) } ?? false
            )
        }
        let verdicts = Dictionary(uniqueKeysWithValues: isHeldOff)
        return failures.map { verdicts[$0.kind] == false }
    }

    private func isTooMany(_ failed: Failures, of posted: Int) -> Bool {
        failed.owners.count >= configuration.minimumOwnerCount && Double(failed.count) > configuration.failureShare * Double(posted)
    }

    private func number(at now: Timestamp) -> Int64 {
        now.rawValue / max(1, configuration.window.nanoseconds / Int64(max(1, configuration.slotCount)))
    }

    private func tally(of credentialScope: CredentialScope, _ now: Timestamp) -> Tally {
        let oldest = number(at: now) - Int64(configuration.slotCount)
        var sum = Tally()
        for slot in slots[credentialScope] ?? slots[credentialScope.rest] ?? [] where slot.number > oldest {
            sum.posted += slot.tally.posted
            for (reason, failures) in slot.tally.failed { sum.failed[reason, default: Failures()].add(failures) }
        }
        return sum
    }

    private mutating func change(_ credentialScope: CredentialScope, _ now: Timestamp, _ change: (inout Tally) -> Void) {
        let number = number(at: now)
        let oldest = number - Int64(configuration.slotCount)
        var credentialScope = credentialScope
        if slots[credentialScope] == nil, slots.count >= configuration.scopeLimit {
            slots = slots.filter { $0.value.last.map { $0.number > oldest } ?? false }
            if slots.count >= configuration.scopeLimit { credentialScope = credentialScope.rest }
        }
        var own = slots[credentialScope] ?? []
        // After the clock was set back, counts go to the latest slot.
        if own.last.map({ $0.number < number }) ?? true {
            own.removeAll { $0.number <= oldest }
            own.append(Slot(number: number))
        }
        change(&own[own.count - 1].tally)
        slots[credentialScope] = own
    }
}
