import Foundation
import Delivery
import NodeAssembly
import NodeMetrics
import PushNode
import Storage
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// The system's clock with an offset that a test sets.
final class SetClock: Sendable {
    private let offset = Mutex(Duration.zero)

    var now: Timestamp { .now() + offset.withLock { $0 } }

    func set(_ offset: Duration) { self.offset.withLock { $0 = offset } }
}

@Suite("Steps of the system clock", .timeLimit(.minutes(5)))
struct ClockTests {
    let fixture: NodeFixture
    let bob: TestClient
    private let clock = SetClock()

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    @Test("Waiting notifications do not expire by a step, and are delivered once", arguments: [86_400, -86_400])
    func waiting(step: Int) async throws {
        let messageID = randomBytes(32)
        fixture.gorush.answer(.failed(retryAfter: nil))
        try await fixture.withNode(configure: { $0.awaitLimit = .milliseconds(200) }, now: { [clock] in clock.now }) {
            [bob, clock] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob, messageID: messageID) == .internalError)
            clock.set(.seconds(step))
            let attempts = node.gorush.attempts
            try await node.wait { node.gorush.attempts > attempts }
            #expect(node.count(.notificationExpired) == 0)
            node.gorush.answer(.accepted)
            try await node.wait { node.count(.notificationAccepted) == 1 }
            clock.set(.zero)
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(node.gorush.accepted.count == 1)
        }
    }

    @Test("Deliveries are remembered when the clock is set two days ahead and back, and when it is set back permanently")
    func duplicates() async throws {
        let (before, behind) = (randomBytes(32), randomBytes(32))
        try await fixture.withNode(configure: { $0.maintenanceInterval = .milliseconds(5) }, now: { [clock] in clock.now }) {
            [bob, clock, fixture] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob, messageID: before) == nil)
            clock.set(.seconds(2 * 86_400))
            try await Self.waitForPruning(fixture)
            clock.set(.zero)
            #expect(try await node.notify(bob, messageID: before) == nil)
            clock.set(.seconds(-86_400))
            #expect(try await node.notify(bob, messageID: behind) == nil)
            try await Self.waitForPruning(fixture)
            #expect(try await node.notify(bob, messageID: before) == nil)
            #expect(try await node.notify(bob, messageID: behind) == nil)
            #expect(node.gorush.accepted.count == 2)
            #expect(try await node.register(bob, version: 2) == nil)
        }
    }

    /// Pruning goes with every twelfth round of maintenance from the tenth minute on, and storing the current time with every twelfth at least.
    private static func waitForPruning(_ fixture: NodeFixture) async throws {
        let store = try NodeAssembly.existingStore(in: fixture.folder.path, of: nil)
        var times: Set<[UInt8]> = []
        let deadline = ContinuousClock.now + .seconds(60) * TestTimeout.factor
        while times.count < 16, ContinuousClock.now < deadline {
            if let time = try store.read(Properties.property("alive at")) { times.insert(time) }
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(times.count >= 16)
    }
}
