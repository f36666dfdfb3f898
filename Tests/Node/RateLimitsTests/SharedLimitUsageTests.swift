import Synchronization
import Testing
import Core
import WakuCrypto

@testable import RateLimits

/// Limits that several nodes count together.
@Suite struct SharedLimitUsageTests {
    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private let sender = PrivateKey.generate().publicKey
    private let other = PrivateKey.generate().publicKey

    /// Gates of nodes that report their usage to each other.
    private final class Nodes: Sendable {
        let gates: [RateLimits]
        let told = Mutex<[(String, Int)]>([])
        let now = Mutex(Timestamp(rawValue: 1_700_000_000_000_000_000))

        init(_ count: Int, _ limits: Limits) {
            gates = (0..<count).map { _ in RateLimits(limits) }
            for (place, gate) in gates.enumerated() {
                gate.exchangeUsage(
                    by: LimitUsageExchange { bytes, purpose in
                        SHA3.hash256(Array(purpose.utf8) + bytes)
                    } publish: { [unowned self] takes in
                        told.withLock { $0 += takes }
                        for index in gates.indices where index != place {
                            for (name, cost) in takes {
                                gates[index].recordSharedLimitUsage(name, cost: cost, at: now.withLock(\.self))
                            }
                        }
                    })
                gate.share(among: count)
            }
        }
    }

    private func admits(_ gate: RateLimits, request key: PublicKey, at time: Timestamp? = nil) -> Bool {
        !gate.refuses { $0.message(.request, from: key, at: time ?? start) }
    }

    private func limits(_ change: (inout Limits) -> Void) -> Limits {
        var limits = Limits.none
        change(&limits)
        return limits
    }

    @Test func messagesAdmittedByOneNodeCountAtTheOthers() {
        let nodes = Nodes(3, limits { $0.requestsBySender = RateLimit(3, per: .hour, burst: 3) })
        let gates = nodes.gates
        #expect(gates.map { admits($0, request: sender) } == [true, true, true])
        #expect(gates.map { admits($0, request: sender) } == [false, false, false])
        #expect(admits(gates[1], request: other))
        // One token is regained, which only one node may use.
        nodes.now.withLock { $0 = start + .seconds(1200) }
        #expect(gates.map { admits($0, request: sender, at: start + .seconds(1200)) } == [true, false, false])
    }

    @Test func limitsOfAllKindsAreCountedTogether() throws {
        let rate = RateLimit(1, per: .day)
        let nodes = Nodes(
            2,
            limits { limits in
                for (_, path, _) in Limits.rates { limits[keyPath: path] = rate }
            })
        let hash = Shake256.hash64(sender.compressed)
        let asks: [(RateLimitTable.Refusal, (inout RateLimitTable) -> RateLimitTable.Refusal?)] = [
            (.messagesBySender, { $0.message(from: sender, at: start) }),
            (.registrationsBySender, { $0.message(.registration, from: sender, at: start) }),
            (.queriesBySender, { $0.message(.query, from: sender, at: start) }),
            (.requestsBySender, { $0.message(.request, from: sender, at: start) }),
            (.queriesByTarget, { $0.query(about: hash, at: start) }),
            (.notificationsByTarget, { $0.notification(for: hash, at: start) }),
            (.newRegistrations, { $0.newRegistration(installations: 0, at: start) }),
            (.answerKiBByTarget, { $0.answer(byteCount: 1, about: hash, at: start) }), (.answerKiB, { $0.answer(byteCount: 1, at: start) }),
            (.wholeAnswersByTarget, { $0.answer(byteCount: 1 << 20, about: Shake256.hash64(other.compressed), at: start) }),
        ]
        for (limit, ask) in asks {
            nodes.gates[1].reportRefusals { refusal, _ in #expect(refusal == limit) }
            let refused = nodes.gates.map { $0.refuses(ask) }
            #expect(refused == [false, true], "\(limit)")
        }
        // A limit in total applies to other senders too.
        nodes.gates[1].reportRefusals { refusal, _ in #expect(refusal == .registrations) }
        let isRefused = nodes.gates[1].refuses { $0.message(.registration, from: other, at: start) }
        #expect(isRefused)
        // Names do not disclose the sender.
        let told = nodes.told.withLock(\.self).map(\.0)
        // Three messages, the notification and the long answer count twice; the last registration counts only for its sender.
        #expect(told.count == asks.count + 6)
        #expect(told.allSatisfy { !$0.contains(sender.hex) && !$0.contains(hexString(hash)) })
    }

    @Test func dividedRatesAreNotPublished() {
        let nodes = Nodes(2, limits { $0.requestsBySender = RateLimit(60, per: .hour, burst: 1) })
        #expect(nodes.gates.map { admits($0, request: sender) } == [true, true])
        #expect(nodes.told.withLock(\.count) == 0)
    }

    /// The first attempt may have been counted, and may have failed.
    @Test func aLaterTurnIsCountedAndNotRefused() {
        let nodes = Nodes(2, limits { $0.requests = RateLimit(1, per: .day) })
        #expect(admits(nodes.gates[0], request: sender))
        let isRefused = nodes.gates[1].refuses(isRetry: true) { $0.message(.request, from: sender, at: start) }
        #expect(!isRefused)
        #expect(!admits(nodes.gates[1], request: sender))
        // Rates that are not shared refuse retries.
        let divided = Nodes(1, limits { $0.requests = RateLimit(1, per: .day) })
        #expect(admits(divided.gates[0], request: sender))
        let isRefusedAlone = divided.gates[0].refuses(isRetry: true) { $0.message(.request, from: sender, at: start) }
        #expect(isRefusedAlone)
        let fresh = Nodes(2, limits { $0.requests = RateLimit(1, per: .day) })
        _ = fresh.gates[1].refuses(isRetry: true) { $0.message(.request, from: sender, at: start) }
        #expect(!admits(fresh.gates[0], request: sender))
    }

    @Test func usageIsKeptWhenNodesComeAndGo() {
        let nodes = Nodes(
            3,
            limits { limits in
                limits.requestsBySender = RateLimit(1, per: .day)
                limits.requests = RateLimit(100, per: .second)
            })
        let gate = nodes.gates[0]
        #expect(admits(gate, request: sender))
        gate.share(among: 2)
        #expect(!admits(gate, request: sender))
        // A changed limit starts with a full rate.
        var other = limits { $0.requestsBySender = RateLimit(2, per: .day) }
        other.requests = RateLimit(100, per: .second)
        gate.replace(other)
        #expect(admits(gate, request: sender))
    }

    @Test func aSingleNodePublishesNothing() {
        let nodes = Nodes(1, limits { $0.requests = RateLimit(1, per: .day) })
        #expect([sender, other].map { admits(nodes.gates[0], request: $0) } == [true, false])
        #expect(nodes.told.withLock(\.count) == 0)
    }

    @Test func namesOfTakesAreReadAsTheyAreWritten() {
        let take = SharedLimitUsage(.requestsBySender, key: [1, 2], cost: 7)
        #expect(take.name == "requests-by-sender:0102")
        #expect(SharedLimitUsage(name: take.name, cost: 7) == take)
        for name in ["", ":", "requests-by-sender:", "requests-by-sender:1", "requests-by-sender", "wishes:0102", "a:b:c", "denied:01"] {
            #expect(SharedLimitUsage(name: name, cost: 1) == nil)
        }
        #expect(SharedLimitUsage(name: take.name, cost: 0) == nil && SharedLimitUsage(name: take.name, cost: -1) == nil)
    }

    @Test func usageOfOthersNeverExceedsTheBucket() {
        var limiter = RateLimiter<Int>(RateLimit(2, per: .hour, burst: 2))
        limiter.note(1, cost: .max, at: start)
        limiter.note(1, cost: 5, at: start)
        limiter.note(1, cost: -5, at: start)
        #expect([1799, 1800].map { limiter.admits(1, at: start + .seconds($0)) } == [false, true])
        #expect(limiter.admits(2, at: start + .seconds(1800)) == true)
    }
}
