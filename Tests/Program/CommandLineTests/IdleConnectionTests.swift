import CurlClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Clients that connect and send nothing or half a request, to a daemon with few file descriptors.
@Suite(.timeLimit(.minutes(5)))
struct IdleConnectionTests {
    private static let descriptorLimit = 256
    private static let begun = [
        "", "GET /readyz HTTP/1.1\r\nX-Half: a hea", "POST /feedback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf",
    ]

    private let node: OperatedNode

    init() throws {
        node = try OperatedNode()
    }

    private func start(shell: String) async throws -> Daemon {
        let daemon = try await Daemon.start(
            ["--identity", node.server.path, "--data", node.data, "--gorush", node.gorush.url, "--log-level", "debug"], shell: shell)
        try await eventually { FileManager.default.fileExists(atPath: node.data + "/admin.sock") }
        return daemon
    }

    private func port(of url: String) throws -> UInt16 {
        try #require(URL(string: url)?.port.flatMap { UInt16(exactly: $0) })
    }

    /// Processor time of a process so far: fields 14 and 15 of `/proc/PID/stat`, in hundredths of a second.
    private func processorTime(of process: ChildProcess) throws -> Duration {
        let text = try String(contentsOfFile: "/proc/\(process.processID)/stat", encoding: .utf8)
        let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
        let ticks = try fields[12...13].map { try #require(Int($0)) }
        return .milliseconds(10 * (ticks[0] + ticks[1]))
    }

    private func openFileCount(of process: ChildProcess) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.processID)/fd").count
    }

    private func postCount() -> Int {
        node.gorush.requests.count { String(decoding: $0.body, as: UTF8.self).contains(OperatedNode.deviceToken) }
    }

    /// Idle connections to each listener, more than there are descriptors for: health is answered, notifications are posted, no core is
    /// burnt, and descriptors are left.
    @Test func deliveriesContinue() async throws {
        defer { node.gorush.stop() }
        let daemon = try await start(shell: "ulimit -n \(Self.descriptorLimit); exec \"$0\" \"$@\"")
        #expect(try await node.register(daemon).status == 0)
        var idle: [RawConnection] = []
        let ports = [try port(of: daemon.httpURL), try port(of: daemon.relayURL)]
        for number in 0..<150 {
            for port in ports { idle.append(try RawConnection(port: port, sending: Self.begun[number % Self.begun.count])) }
            if number < 40 { idle.append(try RawConnection(path: node.data + "/admin.sock")) }
        }
        let (wallBefore, processorBefore) = (ContinuousClock.now, try processorTime(of: daemon.process))

        #expect(try await daemon.get("/readyz").status == 200)
        #expect(try await node.client(daemon, "notify", "--registrant", node.bob.publicKey, "--message-id", "01").status == 0)
        try await eventually { postCount() == 1 }
        for _ in 0..<20 { #expect(try await daemon.get("/readyz").status == 200) }
        #expect(try await node.admin("status").status == 0)
        #expect(try openFileCount(of: daemon.process) < Self.descriptorLimit * 7 / 8)

        // The slowest are closed one after the other: first heads within 10 s, bodies within 30 s.
        try await eventually { idle.allSatisfy(\.isClosed) }
        let (wall, processor) = (wallBefore.duration(to: .now), try processorTime(of: daemon.process) - processorBefore)
        #expect(processor < wall / 3, "\(processor) of \(wall)")
        #expect(try await daemon.get("/readyz").status == 200)
        #expect(await daemon.stop().status == 0)
        #expect(node.leaks == [])
    }

    /// With all descriptors used, listeners pause instead of retrying in a loop, and continue when descriptors are free.
    @Test func acceptPausesWithoutDescriptors() async throws {
        defer { node.gorush.stop() }
        let daemon = try await start(shell: "exec \"$0\" \"$@\"")
        try await setDescriptorLimit(of: daemon.process, try openFileCount(of: daemon.process) + 3)
        let port = try port(of: daemon.httpURL)
        let idle = Mutex(try (0..<12).map { _ in try RawConnection(port: port) })
        let pause = "failed to accept HTTP connections; pausing"
        try await eventually { daemon.process.errors.contains(pause) || !daemon.process.isRunning }
        let (wallBefore, processorBefore) = (ContinuousClock.now, try processorTime(of: daemon.process))
        // Four a second.
        try await eventually { daemon.process.errors.ranges(of: pause).count > 12 || !daemon.process.isRunning }
        let (wall, processor) = (wallBefore.duration(to: .now), try processorTime(of: daemon.process) - processorBefore)
        #expect(wall > .seconds(2))
        #expect(processor < wall / 3, "\(processor) of \(wall)")
        idle.withLock { $0 = [] }
        try await setDescriptorLimit(of: daemon.process, 1024)
        try await eventually { (try? await daemon.get("/readyz").status) == 200 }
        #expect(await daemon.stop().status == 0)
    }

    /// Of a process that runs; the hard limit stays.
    private func setDescriptorLimit(of process: ChildProcess, _ count: Int) async throws {
        let command = try ChildProcess(
            ["--pid", "\(process.processID)", "--nofile=\(count):"], program: URL(fileURLWithPath: "/usr/bin/prlimit"))
        #expect(await command.status == 0, "\(command.errors)")
    }

    /// The soft limit is raised to the hard one.
    @Test func theHardLimitOfDescriptorsIsUsed() async throws {
        defer { node.gorush.stop() }
        let daemon = try await start(shell: "ulimit -Sn 300; ulimit -Hn 900; exec \"$0\" \"$@\"")
        let limits = try String(contentsOfFile: "/proc/\(daemon.process.processID)/limits", encoding: .utf8)
        let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
        #expect(line.split(separator: " ").dropFirst(3).prefix(2) == ["900", "900"])
        #expect(await daemon.stop().status == 0)
    }
}
