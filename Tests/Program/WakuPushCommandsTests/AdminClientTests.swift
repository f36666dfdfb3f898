import Foundation
import PushNode
import TestSupport
import Testing

@testable import WakuPushCommands

/// A suspended daemon: the kernel accepts connections to its socket, and nobody answers.
private final class SuspendedDaemon {
    let folder: TemporaryFolder
    private let handle: Int32

    /// - Parameter backlog: the number of connections that the kernel accepts, minus one.
    init(in folder: TemporaryFolder? = nil, backlog: Int32 = 16) throws {
        self.folder = try folder ?? TemporaryFolder()
        handle = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: (self.folder.path + "/admin.sock").utf8.prefix(107)) }
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(handle, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard status == 0, listen(handle, backlog) == 0 else { throw POSIXError(.EADDRINUSE) }
    }

    deinit { close(handle) }
}

@Suite(.timeLimit(.minutes(2))) struct AdminClientTests {
    /// Requests that may take an hour are not sent to it.
    @Test func aSuspendedDaemonIsReportedWithinTheLimitOfPromptRequests() async throws {
        let daemon = try SuspendedDaemon()
        let client = try AdminClient(folder: daemon.folder.path, promptLimit: .milliseconds(100))
        let requests: [() async throws -> Void] = [
            { _ = try await client.status() },
            { _ = try await client.setup() },
            { let _: AdminAPI.Health = try await client.get("/health") },
            { let _: AdminAPI.LogLevel = try await client.post("/log-level", AdminAPI.LogLevel(level: "debug")) },
            { let _: AdminAPI.Drain = try await client.post("/drain", [String](), timeout: .seconds(3600)) },
        ]
        for request in requests {
            let failure = await #expect(throws: CommandFailure.self) { try await request() }
            #expect(failure?.code == .unavailable)
            #expect(failure?.message.hasPrefix("the daemon on data folder \(daemon.folder.path) does not answer: ") == true)
        }
        withExtendedLifetime(daemon) {}
    }

    /// Its store is not known, so commands must not use the database in the folder instead.
    @Test func aDaemonWithAFullQueueOfConnectionsIsNoAbsentOne() async throws {
        let daemon = try SuspendedDaemon(backlog: 0)
        let socket = try #require(AdminSocket(in: daemon.folder.path))
        let waiting = try RawConnection(path: socket.path)
        #expect(socket.connectionError == EAGAIN)
        let client = try AdminClient(folder: daemon.folder.path, promptLimit: .milliseconds(100))
        let failure = await #expect(throws: CommandFailure.self) { try await client.setup() }
        #expect(failure?.code == .unavailable)
        #expect(failure?.message.hasPrefix("the daemon on data folder \(daemon.folder.path) does not answer: ") == true)
        withExtendedLifetime((daemon, waiting)) {}
    }

    @Test func withoutADaemonThereIsNoSetup() async throws {
        let folder = try TemporaryFolder()
        #expect(try await AdminClient.setup(of: folder.path) == nil)
        #expect(try await AdminClient.setup(of: folder.path + "/missing") == nil)
        try write("", to: folder.path + "/file")
        #expect(try await AdminClient.setup(of: folder.path + "/file") == nil)
        // It leaves its socket, as a daemon that is killed does.
        do { _ = try SuspendedDaemon(in: folder) }
        #expect(try await AdminClient.setup(of: folder.path) == nil)
        #expect(AdminSocket(in: folder.path)?.connectionError == ECONNREFUSED)
    }
}
