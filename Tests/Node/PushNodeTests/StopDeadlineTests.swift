import Delivery
import Logging
import NodeAssembly
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import PushNode

@Suite("The deadline of a stop", .timeLimit(.minutes(2)))
struct StopDeadlineTests {
    private struct Refused: Error {}

    /// Work that does not end before it is released.
    private final class Hang: Sendable {
        private let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
        var hasBegun: Bool { waiting.withLock { $0 != nil } }

        func wait() async {
            await withCheckedContinuation { continuation in waiting.withLock { $0 = continuation } }
        }

        func end() { waiting.withLock { $0.take() }?.resume() }
    }

    @Test("Work that ends is waited for, and its error is thrown")
    func endingWork() async throws {
        let deadline = StopDeadline(limit: .seconds(3600))
        #expect(try await deadline.run {})
        await #expect(throws: Refused.self) { try await deadline.run { throw Refused() } }
        // Cancelled work ends by itself.
        let run = Task { try await deadline.run { while (try? await Task.sleep(for: .seconds(3600))) != nil {} } }
        run.cancel()
        #expect(try await run.value)
    }

    @Test("Work that ignores its cancellation is abandoned")
    func cancelledWork() async throws {
        let hang = Hang()
        let run = Task { try await StopDeadline(limit: .milliseconds(1)).run { await hang.wait() } }
        try await eventually { hang.hasBegun }
        run.cancel()
        #expect(try await !run.value)
        hang.end()
    }

    @Test("A node stops although its database hangs, and says so", arguments: [true, false])
    func hangingDatabase(hangs: Bool) async throws {
        let (log, folder) = (RecordedLog(), try TemporaryFolder())
        let faults = StoreFaults(in: folder.path)
        var configuration = NodeConfiguration(identity: .generate(), dataPath: folder.path)
        configuration.stopLimit = hangs ? .milliseconds(100) : .seconds(60)
        let node = try NodeService(
            configuration, protocols: [EchoProtocol()], gorush: [GorushEndpoint(ScriptedGorush())], logger: log.logger
        ) { _ in FeedRelay() }
        let services = ServiceGroup(services: [node], logger: Logger(label: "lifecycle") { _ in SwiftLogNoOpLogHandler() })
        let run = Task { try await services.run() }
        try await node.wait { log.contains("node started") }
        if hangs { faults.add(.stall, to: [.write, .sync]) }
        await services.triggerGracefulShutdown()
        try await run.value
        #expect(log.contains("stop abandoned; unfinished commits have an unknown outcome, as after kill -9") == hangs)
        #expect(log.contains("node stopped") == !hangs)
        // The abandoned rest ends before the folder is removed.
        faults.clear()
        try await node.wait { log.contains("node stopped") }
        withExtendedLifetime(folder) {}
    }
}
