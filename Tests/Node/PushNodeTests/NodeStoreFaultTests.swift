import NodeAssembly
import NodeMetrics
import PushClient
import PushNode
import StatusProtocol
import StatusServer
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// SQLite's result codes.
private enum Code {
    static let busy: Int32 = 5
    static let readOnly: Int32 = 8
    static let corrupt: Int32 = 11
    static let full: Int32 = 13
    static let readError: Int32 = 266
    static let writeError: Int32 = 778
    static let syncError: Int32 = 1034
}

@Suite("Failing disks", .timeLimit(.minutes(5)))
struct NodeStoreFaultTests {
    let fixture: NodeFixture
    let faults: StoreFaults
    let bob: TestClient

    init() throws {
        fixture = try NodeFixture()
        faults = StoreFaults(in: fixture.folder.path)
        bob = TestClient(of: fixture.identity.publicKey)
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        let name: String
        let code: Int32
        let operations: StoreFaults.Operations
        let complaint: String
        var testDescription: String { name }
    }

    @Test(
        "The node keeps running, reports the failure, acknowledges only stored changes, answers queries, and recovers",
        arguments: [
            Fault(name: "disk full", code: Code.full, operations: .write, complaint: "store: no disk space for the database"),
            Fault(name: "write error", code: Code.writeError, operations: .write, complaint: "store: the disk fails under the database"),
            Fault(name: "sync error", code: Code.syncError, operations: .sync, complaint: "store: the disk fails under the database"),
            Fault(
                name: "read-only", code: Code.readOnly, operations: .write,
                complaint: "store: the database in the data folder can't be written"),
            Fault(name: "busy", code: Code.busy, operations: .lock, complaint: "store: the database in the data folder is locked"),
        ])
    func writing(fault: Fault) async throws {
        let carol = TestClient(of: fixture.identity.publicKey)
        let lost = randomBytes(32)
        try await fixture.withNode(configure: { $0.maintenanceInterval = .milliseconds(50) }) { [bob, faults] node async throws in
            defer { faults.clear() }
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == nil)
            #expect(node.node.obstacles == [])

            faults.add(.code(fault.code), to: fault.operations)
            #expect(try await node.register(bob, version: 2) == .internalError)
            #expect(try await node.register(carol) == .internalError)
            #expect(try await node.notify(bob, messageID: lost) == .internalError)
            try await node.wait { node.node.obstacles.contains { $0.hasPrefix(fault.complaint) } }
            #expect(try await node.versions(of: bob) == [1])
            #expect(node.gorush.accepted.count == 1)

            faults.clear()
            try await node.wait { node.node.obstacles.isEmpty }
            #expect(try await node.register(bob, version: 2) == nil)
            #expect(try await node.notify(carol) == .notRegistered)
            #expect(try await node.notify(bob, messageID: lost) == nil)
            #expect(node.gorush.accepted.count == 2)
        }
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.versions(of: bob) == [2])
            #expect(try await node.notify(bob, messageID: lost) == nil)
            #expect(node.gorush.accepted.count == 2)
        }
    }

    @Test("Acceptance by gorush while the disk is full is recorded later, and nothing is posted twice")
    func acceptedWhileFull() async throws {
        let messageID = randomBytes(32)
        try await fixture.withNode(configure: {
            $0.maintenanceInterval = .milliseconds(50)
            $0.awaitLimit = .seconds(1)
        }) { [bob, faults] node async throws in
            #expect(try await node.register(bob) == nil)
            node.gorush.whenPosted { faults.add(.code(Code.full), to: .write) }
            #expect(try await node.notify(bob, messageID: messageID) == .internalError)
            #expect(node.gorush.accepted.count == 1)
            faults.clear()
            try await node.wait { node.count(.notificationAccepted) == 1 }
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(node.gorush.attempts == 1)
        }
        try await fixture.withNode { [bob] node async throws in
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(node.gorush.attempts == 1)
        }
    }

    @Test(
        "Unreadable rows are answered INTERNAL_ERROR or not at all, and reported until they can be read again",
        arguments: [(Code.readError, "can't be read"), (Code.corrupt, "is damaged")])
    func reading(code: Int32, complaint: String) async throws {
        try await fixture.withNode { [bob] node async throws in #expect(try await node.register(bob) == nil) }
        try await fixture.withNode(configure: { $0.maintenanceInterval = .milliseconds(50) }) { [bob, faults] node async throws in
            defer { faults.clear() }
            faults.add(.code(code), to: .read)
            #expect(try await node.notify(bob) == .internalError)
            try await node.wait { node.node.obstacles.contains { $0.hasPrefix("store: the database in the data folder \(complaint)") } }
            #expect(node.gorush.attempts == 0)
            faults.clear()
            try await node.wait { node.node.obstacles.isEmpty }
            #expect(try await node.notify(bob) == nil)
            #expect(try await node.versions(of: bob) == [1])
        }
    }

    @Test("A disk that hangs delays answers until the changes are stored")
    func stalled() async throws {
        try await fixture.withNode { [bob, faults] node async throws in
            // Else the node could not end.
            defer { faults.clear() }
            #expect(try await node.register(bob) == nil)
            faults.add(.stall, to: .sync, of: .log)
            async let late = node.register(bob, version: 2)
            try await node.wait { faults.hits > 0 }
            #expect(node.count(.registrationStored) == 1)
            faults.clear()
            #expect(try await late == nil)
            #expect(node.node.obstacles == [])
            #expect(try await node.versions(of: bob) == [2])
        }
    }
}

extension RunningNode {
    /// Of the registrations that a query finds.
    func versions(of client: TestClient) async throws -> [UInt64] {
        try await withClient { try await $0.query(client.identity.publicKey, at: server, timeout: .seconds(60)) }.map(\.version)
    }
}
