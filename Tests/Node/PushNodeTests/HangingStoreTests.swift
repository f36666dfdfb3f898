import NodeAPI
import CurlClient
import Dispatch
import NodeAssembly
import NodeMetrics
import PushClient
import Storage
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import PushNode

/// A disk that hangs: every thread that reads the database waits for it.
@Suite("Hanging reads of the database", .timeLimit(.minutes(5)))
struct HangingStoreTests {
    /// Blocks the readers until it is released.
    private final class Hang: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        private let blocked = Mutex(0)
        private static let readerCount = 4

        func begin(_ node: RunningNode) async throws {
            for _ in 0..<Self.readerCount {
                node.node.store.onReader { [self] in
                    blocked.withLock { $0 += 1 }
                    semaphore.wait()
                }
            }
            try await node.wait { self.blocked.withLock { $0 } == Self.readerCount }
        }

        func end() {
            for _ in 0..<Self.readerCount { semaphore.signal() }
        }
    }

    @Test(
        "Relay, registrations, HTTP, admin and the liveness check continue, readiness reports the reason, and waiting queries are answered later"
    )
    func hanging() async throws {
        let (fixture, log) = (try NodeFixture(), RecordedLog())
        try await fixture.withNode(
            configure: { $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0) }, logger: log.logger
        ) { node async throws in
            let bob = TestClient(of: node.server)
            try await node.register(bob)
            _ = try await node.withClient { try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60)) }
            let hang = Hang()
            try await hang.begin(node)
            // Far more than there are threads in the cooperative pool.
            let queries = (0..<50).map { _ in
                Task { try await node.withClient { try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(100)) } }
            }
            try await node.wait { node.count(.ours) >= 52 }
            // Registrations need only the writer.
            for _ in 0..<5 { #expect(try await node.register(TestClient(of: node.server)) == nil) }
            #expect(try await node.get("/healthz").status == 200)
            #expect(try await node.get("/metrics").status == 200)
            #expect(try await node.get("/status.json").status == 200)
            _ = await node.node.status()
            await node.node.checkLiveness()
            // After ten seconds it is reported.
            try await node.wait { node.node.store.failure != nil }
            let ready = try await node.get("/readyz")
            #expect(ready.status == 503)
            #expect(String(decoding: ready.body, as: UTF8.self).contains("the disk has not answered for"))
            try await node.wait { log.contains("store unavailable reason=the disk has not answered for") }
            hang.end()
            for query in queries { #expect(try await query.value.count == 1) }
            #expect(try await node.get("/readyz").status == 200)
            try await node.wait { log.contains("store available again") }
        }
    }
}

/// A disk that hangs while it syncs: the writer waits for it, readers do not.
@Suite("Hanging commits of the database", .timeLimit(.minutes(5)))
struct HangingCommitTests {
    @Test("Queries are answered during a hanging commit, and registrations after it")
    func hanging() async throws {
        let fixture = try NodeFixture()
        try await fixture.withNode { node async throws in
            let (bob, carol) = (TestClient(of: node.server), TestClient(of: node.server))
            try await node.register(bob)
            let semaphore = DispatchSemaphore(value: 0)
            node.node.store.submit([StoreCommand<Void>.read([]) { _ in .done(semaphore.wait()) }]) { _ in }
            let registration = Task { try await node.register(carol) }
            try await node.wait { node.count(.ours) == 2 }
            let found = try await node.withClient { try await $0.query(bob.identity.publicKey, at: node.server, timeout: .seconds(100)) }
            #expect(found.count == 1)
            semaphore.signal()
            #expect(try await registration.value == nil)
        }
    }
}
