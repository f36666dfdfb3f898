package import Core
import Waku

/// Keeps an operator's mistake from emptying the registrations: when too many tokens fail alike, none of those is held against its device.
///
/// A wrong certificate, environment or Firebase project makes APNs and Firebase say of every token what they else say of a dead one. So
/// failures are judged against what was posted to the same platform and APNs topic in the last hour. Failures for the same reason hold
/// each other off when there are
///
/// - at least ten of them, and
/// - more than a fifth of the tokens that were posted, either in the hour or in the batch that they came with.
///
/// Ten, because one dead token in a batch of one is all of it, and ordinary: uninstalled apps come singly, and each is removed at its first
/// failure, so that their share stays at a few percent. What is removed before the tenth failure alike is the most that a mistake can cost in
/// an hour. An hour, because a hook tells failures one by one, and a small node posts few.
///
/// Topics are what clients chose: a hundred of them are told apart, the others are taken together. Those without posts for an hour are
/// forgotten.
package struct FailureGuard: Sendable {
    package struct Configuration: Sendable {
        /// Of ``slotCount`` slots, the oldest of which is forgotten as a whole.
        package var window: Duration = .seconds(3600)
        package var slotCount = 12
        /// Alike.
        package var minimumFailureCount = 10
        /// Of the tokens that were posted.
        package var failureShare = 0.2
        package var audienceLimit = 100

        package init() {}
    }

    /// Who hears through the same certificate, key or project.
    package struct Audience: Hashable, Sendable {
        package let platform: Platform
        /// nil for Firebase, and for the topics beyond the limit.
        package let topic: String?
        /// Session's devices have other certificates and projects than those of Status; nil for the latter.
        package let service: PushService?

        package init(platform: Platform, topic: String, service: PushService? = nil) {
            self.init(platform: platform, anyTopic: platform == .apn ? topic : nil, service: service)
        }

        fileprivate init(platform: Platform, anyTopic topic: String?, service: PushService?) {
            self.platform = platform
            self.topic = topic
            self.service = service
        }
    }

    /// Of one token.
    package struct Failure: Hashable, Sendable {
        package let audience: Audience
        package let reason: FailureReason

        package init(audience: Audience, reason: FailureReason) {
            self.audience = audience
            self.reason = reason
        }
    }

    private struct Tally {
        var posted = 0
        var failed: [FailureReason: Int] = [:]
    }

    private struct Slot {
        let number: Int64
        var tally = Tally()
    }

    private let configuration: Configuration
    /// By age, oldest first.
    private var slots: [Audience: [Slot]] = [:]

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Tokens that gorush took.
    package mutating func posted(_ counts: [Audience: Int], at now: Timestamp) {
        for (audience, count) in counts { change(audience, now) { $0.posted += count } }
    }

    /// Which of these failures count: true for each that does.
    ///
    /// - Parameters:
    ///   - failures: all of a batch, or those that a hook told together.
    ///   - batch: how many tokens were posted in the batch that they came with; empty when they came by a hook. They are in ``posted(_:at:)``
    ///     already.
    package mutating func judge(_ failures: [Failure], of batch: [Audience: Int] = [:], at now: Timestamp) -> [Bool] {
        for failure in failures { change(failure.audience, now) { $0.failed[failure.reason, default: 0] += 1 } }
        var alike: [Failure: Int] = [:]
        for failure in failures { alike[failure, default: 0] += 1 }
        let isHeldOff = alike.map { failure, count in
            let lately = tally(of: failure.audience, now)
            return (
                failure,
                isTooMany(lately.failed[failure.reason, default: 0], of: lately.posted)
                    || batch[failure.audience].map { isTooMany(count, of: $0) } ?? false
            )
        }
        let verdicts = Dictionary(uniqueKeysWithValues: isHeldOff)
        return failures.map { verdicts[$0] == false }
    }

    private func isTooMany(_ failed: Int, of posted: Int) -> Bool {
        failed >= configuration.minimumFailureCount && Double(failed) > configuration.failureShare * Double(posted)
    }

    private func number(at now: Timestamp) -> Int64 {
        now.rawValue / max(1, configuration.window.nanoseconds / Int64(max(1, configuration.slotCount)))
    }

    private func tally(of audience: Audience, _ now: Timestamp) -> Tally {
        let oldest = number(at: now) - Int64(configuration.slotCount)
        var sum = Tally()
        for slot in slots[known(audience)] ?? [] where slot.number > oldest {
            sum.posted += slot.tally.posted
            sum.failed.merge(slot.tally.failed, uniquingKeysWith: +)
        }
        return sum
    }

    private func known(_ audience: Audience) -> Audience {
        slots[audience] == nil ? Audience(platform: audience.platform, anyTopic: nil, service: audience.service) : audience
    }

    private mutating func change(_ audience: Audience, _ now: Timestamp, _ change: (inout Tally) -> Void) {
        let number = number(at: now)
        let oldest = number - Int64(configuration.slotCount)
        var audience = audience
        if slots[audience] == nil, slots.count >= configuration.audienceLimit {
            slots = slots.filter { $0.value.last.map { $0.number > oldest } ?? false }
            if slots.count >= configuration.audienceLimit {
                audience = Audience(platform: audience.platform, anyTopic: nil, service: audience.service)
            }
        }
        var own = slots[audience] ?? []
        // A clock that was set back adds to the slot that it has.
        if own.last.map({ $0.number < number }) ?? true {
            own.removeAll { $0.number <= oldest }
            own.append(Slot(number: number))
        }
        change(&own[own.count - 1].tally)
        slots[audience] = own
    }
}
