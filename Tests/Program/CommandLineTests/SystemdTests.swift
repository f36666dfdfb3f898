import Foundation
import TestSupport
import Testing

/// The daemon under a service manager, which the test simulates.
@Suite(.timeLimit(.minutes(5)))
struct SystemdTests {
    private let folder: TemporaryFolder
    private let key: KeyFile
    private let manager: DatagramListener
    private var standard: [String] { ["--identity", key.path, "--data", folder.path + "/data"] }

    init() throws {
        folder = try TemporaryFolder()
        key = try KeyFile(in: folder, "id.key")
        manager = try DatagramListener(folder.path + "/notify")
    }

    private func next() async throws -> String {
        var notice: String?
        try await eventually {
            notice = manager.next()
            return notice != nil
        }
        return notice ?? ""
    }

    /// Everything up to this.
    private func readUntil(_ notice: String) async throws -> [String] {
        var all: [String] = []
        repeat { all.append(try await next()) } while all.last != notice
        return all
    }

    @Test func readinessStatusAndStopAreNotified() async throws {
        let daemon = try await Daemon.start(standard, environment: ["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "400000"])
        var told = try await readUntil("WATCHDOG=1")
        // The relay may be attached a moment after the port is listened on.
        while !told.contains(where: { $0.hasSuffix("STATUS=Ready") }) { told.append(try await next()) }
        #expect(told.filter { $0.hasPrefix("READY=1\nSTATUS=") }.count == 1)
        for _ in 0..<3 { _ = try await readUntil("WATCHDOG=1") }
        #expect(await daemon.stop().status == 0)
        told = try await readUntil("STOPPING=1\nSTATUS=Stopping: finishing work in progress")
        #expect(told.dropLast().allSatisfy { $0 == "WATCHDOG=1" })
    }

    /// The service is up, and its status has the obstacle.
    @Test func anUnreachableRelay() async throws {
        let process = try ChildProcess(
            ["serve", "--http", "127.0.0.1:\(try freePort())", "--relay", "http://127.0.0.1:\(try freePort())"] + standard,
            environment: ["NOTIFY_SOCKET": manager.address])
        var notice = try await next()
        while !notice.contains("READY=1") { notice = try await next() }
        #expect(notice.hasPrefix("READY=1\nSTATUS=Running, not ready: relay: "))
        process.send(SIGTERM)
        #expect(await process.status == 0)
        var told: [String] = []
        while let notice = manager.next() { told.append(notice) }
        #expect(told.last?.hasPrefix("STOPPING=1\n") == true)
        #expect(!told.contains("WATCHDOG=1"))
    }
}
