import CurlClient
import Foundation
import TestSupport
import Testing

/// The audit log of a running daemon and of commands beside it.
@Suite(.timeLimit(.minutes(5)))
struct AuditTests {
    private struct Record: Decodable {
        let user: UInt32
        let source, action, result: String
    }

    private func records(of node: OperatedNode) async throws -> [Record] {
        try await run(["admin", "audit", "--json", "--data", node.data]).json()
    }

    @Test func recordsSurviveARestart() async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        #expect(try await node.admin("limits").status == 0)
        #expect(try await node.admin("drain").status == 0)
        #expect(try await node.admin("drain", "--undo").status == 0)
        let backup = try await run(["admin", "backup", node.folder.path + "/backup", "--data", node.data, "--identity", node.server.path])
        #expect(backup.status == 0, "\(backup.errors)")
        _ = await daemon.stop()
        let next = try await node.start()
        let found = try await records(of: node)
        #expect(found.map(\.action) == ["drain", "drain", "drain --undo", "drain --undo", "backup", "backup"])
        #expect(found.map(\.result) == ["begun", "succeeded", "begun", "succeeded", "begun", "succeeded"])
        #expect(found.map(\.source) == ["socket", "socket", "socket", "socket", "command", "command"])
        #expect(found.allSatisfy { $0.user == getuid() })
        _ = await next.stop()
    }

    @Test func withoutARecordSecretsAreNotReadAndANodeCanStillBeDrained() async throws {
        let node = try OperatedNode()
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        try FileManager.default.createDirectory(atPath: node.data + "/audit.log", withIntermediateDirectories: false)
        #expect(try await node.admin("drain").status == 0)
        #expect(try await daemon.get("/readyz").status == 503)
        let file = node.folder.path + "/backup"
        let backup = try await run(["admin", "backup", file, "--data", node.data, "--identity", node.server.path])
        #expect(backup.status == 0, "\(backup.errors)")
        #expect(backup.errors.contains("warning: backup is not recorded: the audit log "), "\(backup.errors)")
        let audit = try await node.admin("audit")
        #expect(audit.status == 65 && audit.output.isEmpty, "\(audit.output)")
        #expect(audit.failure?.hasSuffix("/audit.log can't be read: Is a directory") == true, "\(audit.errors)")
        #expect(FileManager.default.fileExists(atPath: file))
        let exported = node.folder.path + "/registrations"
        let export = try await run(
            ["admin", "registrations", "export", exported, "--data", node.data, "--identity", node.server.path])
        #expect(export.status == 73)
        #expect(export.errors.contains("audit.log can't be written"))
        #expect(!FileManager.default.fileExists(atPath: exported))
        let ended = await daemon.stop()
        #expect(ended.errors.contains("failed to write audit log"))
    }
}
