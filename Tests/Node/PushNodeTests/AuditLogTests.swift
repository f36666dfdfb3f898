import Foundation
import TestSupport
import Testing
@testable import PushNode

struct AuditLogTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func record(_ second: Int, _ result: AuditRecord.Result = .begun) -> AuditRecord {
        AuditRecord(time: Date(timeIntervalSince1970: TimeInterval(second)), user: 7, source: .socket, action: .drain, result: result)
    }

    @Test func recordsAreReadAsWritten() throws {
        let records = [record(1), record(2, .failed)]
        for record in records { try AuditLog(in: folder.path).append(record) }
        #expect(AuditLog(in: folder.path).latest(10) == records)
        #expect(AuditLog(in: folder.path).latest(1) == [records[1]])
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path + "/audit.log")[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test func theSizeIsBoundedAndTheLatestAreKept() throws {
        let log = AuditLog(in: folder.path, sizeLimit: 1000)
        for second in 0..<100 { try log.append(record(second)) }
        for name in ["audit.log", "audit.log.1"] {
            let size = try FileManager.default.attributesOfItem(atPath: folder.path + "/" + name)[.size] as? Int
            #expect(try #require(size) < 1200)
        }
        #expect(log.latest(8) == (92..<100).map { record($0) })
    }

    @Test func aTruncatedLineDoesNotDamageTheNext() throws {
        let path = folder.path + "/audit.log"
        try Data(#"{"action":"dra"#.utf8).write(to: URL(fileURLWithPath: path))
        try AuditLog(in: folder.path).append(record(1))
        #expect(AuditLog(in: folder.path).latest(10) == [record(1)])
    }

    @Test func aFolderThatIsMissingIsReported() {
        #expect(throws: AuditLog.Failure.self) { try AuditLog(in: folder.path + "/missing").append(record(1)) }
    }

    @Test func everyRequestThatChangesSomethingIsAudited() {
        let free = AdminRequest.allCases.filter { $0.audited == nil }
        #expect(free == [.status, .health, .peers, .limits, .selfTest, .setup, .inspectGorush])
    }
}
