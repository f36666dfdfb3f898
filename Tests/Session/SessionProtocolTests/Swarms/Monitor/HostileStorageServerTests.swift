import Foundation
@testable import SessionProtocol
import SessionStandIns
import Synchronization
import TestSupport
import Testing

/// Messages of a hostile storage server: other servers are heard meanwhile, and the memory that it takes is bounded.
@Suite(
    .enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with pyzmq: see Deploy/test"), .serialized,
    .timeLimit(.minutes(10)))
struct HostileStorageServerTests {
    private let swarms: [UInt64] = [1 << 62, 3 << 62]

    /// Subscribes an account at the attacker and one at an honest server of this process. During the attack, checks that reports of the honest server
    /// arrive, and waits for the expected outcome.
    ///
    /// - Parameters:
    ///   - kind: The kind of attack in `Tests/Interop/session_network.py`.
    ///   - isSilent: Whether the attacker leaves requests unanswered.
    ///   - outcome: The condition to wait for during the attack.
    @discardableResult
    private func attack(
        _ kind: String, isSilent: Bool = false, until outcome: (MonitoredNetwork) -> Bool
    ) async throws -> MonitoredNetwork {
        let honest = try await StorageServerStandIn(sodium: try .load(), swarms: [swarms[1]])
        // Limits that are reached within a second.
        let test = try await MonitoredNetwork(swarms: [swarms[0]], and: honest.descriptions) {
            $0.drops.burst = 500
            $0.drops.rate = 0
            $0.messages.connectionByteCount = 1 << 20
            // A long pause, so that the reason of the disconnection can be checked.
            $0.swarms.pauses = [.seconds(600)]
        }
        try await test.connected(2)
        if isSilent { try await test.network.tell("silent 0 1") }
        let victim = try test.client(in: swarms[0], of: swarms)
        let other = try test.client(in: swarms[1], of: swarms)
        for client in [victim, other] { test.subscribe(client) }
        try await test.asked(0, victim)
        try await eventually { honest.isMonitored(other.account) }
        try test.network.peer.tell("attack 0 \(kind)")
        for number in 0..<20 {
            let name = PythonNetwork.hash("honest-\(number)")
            #expect(honest.report(.sample(of: other.account, hash: name)) == 1)
            try await eventually { test.inbox.hashes.contains(name) }
        }
        try await eventually { outcome(test) }
        #expect(test.monitor.messages.withLock { $0.byteCount } < 2 << 20)
        try test.network.peer.tell("stop")
        try await test.network.peer.says("attacked")
        // At most the attacker was disconnected.
        #expect(honest.figures.connections == 1 && test.log.lines.count { $0.contains("disconnected") } <= 1, "\(test.log.lines)")
        try await test.stop()
        return test
    }

    @Test(arguments: [
        ("junk", SessionDropReason.malformed), ("foreign", .unsolicited), ("replies", .unknownReply), ("commands", .unknownCommand),
        ("frames", .tooLarge),
    ])
    func serverThatSendsTooManyInvalidMessagesIsReadSlowly(kind: String, reason: SessionDropReason) async throws {
        let slowReading = "reading slowly from storage server: too many invalid messages"
        let test = try await attack(kind) { $0.log.contains(slowReading) }
        // Messages beyond the allowance are not read for a while, and the attacker's connection stays.
        let line = test.log.lines.first { $0.contains(slowReading) }
        let attacker = try #require(line?.split(separator: " ").first { $0.hasPrefix("address=") })
        #expect(!test.log.lines.contains { $0.contains("disconnected") && $0.contains(attacker) }, "\(test.log.lines)")
        #expect(test.events.dropped(reason) > 0 && test.events.dropped(reason) <= 1000)
    }

    @Test func partThatIsTooLargeEndsTheConnection() async throws {
        try await attack("huge") { $0.monitor.figures.connectedServers == 1 }
    }

    @Test func messageWithoutAnEndEndsTheConnection() async throws {
        try await attack("parts") { $0.log.contains("the server sends a message without an end") }
    }

    @Test func replyThatCannotBeUnderstoodEndsTheConnection() async throws {
        try await attack("deep", isSilent: true) { $0.log.contains("invalid reply from storage server") }
    }

    @Test func floodOfValidMessagesTakesTurnsWithOthers() async throws {
        try await attack("valid") { $0.events.count(.received) > 2000 && $0.events.count(.disconnected) == 0 }
    }
}
