package import Core

/// Prevents an operator's mistake from removing all registrations: when too many tokens fail for the same reason, none of these failures counts.
///
/// With a wrong certificate, environment or Firebase project, APNs and Firebase report the same error for every token as for a dead one. So failures
/// are compared with the posts to the same platform, APNs topic and service in the last hour. Failures for the same reason do not count when there
/// are
///
/// - at least ten owners of failed tokens, and
/// - failures of more than a fifth of the devices that were posted to, either in the hour or in their batch.
///
/// Devices are counted, not notifications: a token fails once before it is removed, however many notifications its device got before. In an hour, a
/// mistake can thus cost at most the tokens that are removed before those of a tenth owner fail for the same reason, or a fifth of the devices that were
/// posted to, whichever is more.
///
/// Clients choose the topics, so only a hundred are counted separately and the others together. Topics without posts for an hour are forgotten. Of many
/// devices a sample is counted: see ``Sample``.
package struct FailureGuard: Sendable {
    package struct Configuration: Sendable {
        /// The counted time, in ``slotCount`` slots. Devices are forgotten when a slot begins. It is long because a hook reports failures singly, and a
        /// small node posts few notifications.
        package var window: Duration = .seconds(3600)
        package let slotCount = 12
        /// The number of owners whose tokens fail for the same reason from which these failures may be ignored. One dead token is ordinary, and all
        /// of a batch of one. Owners are counted, not tokens, because a mistake of the operator concerns all owners, and one can register many dead
        /// tokens.
        package let minimumOwnerCount = 10
        /// The share of devices posted to above which failures are ignored. That of uninstalled apps stays at a few percent, because each token is
        /// removed at its first failure.
        package let failureShare = 0.2
        package var scopeLimit = 100
        /// The maximum number of devices counted in a scope. In a sample of half as many, a share of 20 % is found to within 4 %.
        package let sampleLimit = 1024

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
        fileprivate let device: DeviceID
        /// A hash of whoever registered the token.
        fileprivate let owner: Int

        package init(credentialScope: CredentialScope, reason: FailureReason, device: DeviceID, owner: Int) {
            kind = Kind(credentialScope: credentialScope, reason: reason)
            self.device = device
            self.owner = owner
        }
    }

    /// Failures that are compared with each other.
    fileprivate struct Kind: Hashable, Sendable {
        let credentialScope: CredentialScope
        let reason: FailureReason
    }

    /// The devices of a scope in the last hour. If they are too many, a half is left out, then three quarters, and so on: by their hashes, so that the
    /// share of failed devices stays the same.
    private struct Sample {
        /// The devices whose hashes end in so many zeros are counted.
        private var level = 0
        /// The latest slot.
        private(set) var slot = Int64.min
        /// The slot of the last post to each device, by the hashes of the devices.
        private(set) var posted: [Int: Int64] = [:]
        /// The slot and owner of the last failure of each device.
        private(set) var failed: [FailureReason: [Int: (slot: Int64, owner: Int)]] = [:]

        private var count: Int { failed.values.reduce(posted.count) { $0 + $1.count } }

        private func includes(_ hash: Int) -> Bool { hash.trailingZeroBitCount >= level }

        /// Begins a slot and forgets devices. After the clock was set back, devices are counted in the latest slot.
        mutating func advance(to slot: Int64, _ configuration: Configuration) {
            guard slot > self.slot else { return }
            self.slot = slot
            let oldest = slot - Int64(configuration.slotCount)
            posted = posted.filter { $0.value > oldest }
            failed = failed.mapValues { $0.filter { $0.value.slot > oldest } }.filter { !$0.value.isEmpty }
            var count = count
            while level > 0, count < configuration.sampleLimit / 4 {
                level -= 1
                count *= 2
            }
        }

        mutating func addPosts(to devices: [DeviceID], limit: Int) {
            for device in devices where includes(device.hashValue) { posted[device.hashValue] = slot }
            reduce(to: limit)
        }

        mutating func add(_ failure: Failure, limit: Int) {
            let hash = failure.device.hashValue
            guard includes(hash) else { return }
            failed[failure.kind.reason, default: [:]][hash] = (slot, failure.owner)
            reduce(to: limit)
        }

        private mutating func reduce(to limit: Int) {
            while count > limit {
                level += 1
                posted = posted.filter { includes($0.key) }
                failed = failed.mapValues { $0.filter { includes($0.key) } }
            }
        }
    }

    private let configuration: Configuration
    private var samples: [CredentialScope: Sample] = [:]

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    /// Counts devices whose notifications gorush accepted.
    package mutating func posted(_ devices: [CredentialScope: [DeviceID]], at now: Timestamp) {
        let limit = configuration.sampleLimit
        for (credentialScope, devices) in devices { change(credentialScope, now) { $0.addPosts(to: devices, limit: limit) } }
    }

    /// Counts failures and returns for each whether it counts against its token.
    ///
    /// - Parameters:
    ///   - failures: all failures of a batch, or all that a hook reported together.
    ///   - batch: the devices that their batch was posted to, already counted by ``posted(_:at:)``; empty when a hook reported them.
    package mutating func judge(_ failures: [Failure], of batch: [CredentialScope: [DeviceID]] = [:], at now: Timestamp) -> [Bool] {
        let limit = configuration.sampleLimit
        let alike = Dictionary(grouping: failures, by: \.kind)
        for (kind, failures) in alike {
            change(kind.credentialScope, now) { sample in
                for failure in failures { sample.add(failure, limit: limit) }
            }
        }
        let isHeldOff = alike.map { kind, failures in
            let sample = samples[kind.credentialScope] ?? samples[kind.credentialScope.rest] ?? Sample()
            return (
                kind,
                isTooMany((sample.failed[kind.reason] ?? [:]).values.lazy.map { $0.owner }, of: sample.posted.count)
                    || batch[kind.credentialScope].map { isTooMany(failures.lazy.map(\.owner), of: $0.count) } ?? false
            )
        }
        let verdicts = Dictionary(uniqueKeysWithValues: isHeldOff)
        return failures.map { verdicts[$0.kind] == false }
    }

    /// - Parameter owners: of each failed device.
    private func isTooMany(_ owners: some Collection<Int>, of posted: Int) -> Bool {
        guard Double(owners.count) > configuration.failureShare * Double(posted) else { return false }
        var different: Set<Int> = []
        return owners.contains { owner in
            different.insert(owner)
            return different.count >= configuration.minimumOwnerCount
        }
    }

    private mutating func change(_ credentialScope: CredentialScope, _ now: Timestamp, _ change: (inout Sample) -> Void) {
        let slot = now.rawValue / max(1, configuration.window.nanoseconds / Int64(max(1, configuration.slotCount)))
        var credentialScope = credentialScope
        if samples[credentialScope] == nil, samples.count >= configuration.scopeLimit {
            samples = samples.filter { $0.value.slot > slot - Int64(configuration.slotCount) }
            if samples.count >= configuration.scopeLimit { credentialScope = credentialScope.rest }
        }
        var sample = samples.removeValue(forKey: credentialScope) ?? Sample()
        sample.advance(to: slot, configuration)
        change(&sample)
        samples[credentialScope] = sample
    }
}
