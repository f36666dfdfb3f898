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
        #expect(try AuditLog(in: folder.path).latest(10).records == records)
        #expect(try AuditLog(in: folder.path).latest(1).records == [records[1]])
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
        let latest = try log.latest(8)
        #expect(latest.records == (92..<100).map { record($0) } && latest.unreadableCount == 0)
    }

    @Test func aTruncatedLineDoesNotDamageTheNext() throws {
        let path = folder.path + "/audit.log"
        try Data(#"{"action":"dra"#.utf8).write(to: URL(fileURLWithPath: path))
        try AuditLog(in: folder.path).append(record(1))
        let latest = try AuditLog(in: folder.path).latest(10)
        #expect(latest.records == [record(1)] && latest.unreadableCount == 1)
    }

    @Test func aLogThatCannotBeReadIsNotAnEmptyOne() throws {
        let log = AuditLog(in: folder.path)
        #expect(try log.latest(10).records.isEmpty)
        try log.append(record(1))
        // Not even root can read a folder.
        try FileManager.default.createDirectory(atPath: folder.path + "/audit.log.1", withIntermediateDirectories: false)
        let error = #expect(throws: AuditLog.Failure.self) { try log.latest(10) }
        #expect(error?.message == "the audit log \(folder.path)/audit.log.1 can't be read: Is a directory")
    }

    @Test func aFolderThatIsMissingIsReported() {
        #expect(throws: AuditLog.Failure.self) { try AuditLog(in: folder.path + "/missing").append(record(1)) }
    }

    @Test func everyRequestThatChangesSomethingIsAudited() {
        let free = AdminRequest.allCases.filter { $0.audited == nil }
        #expect(free == [.status, .health, .peers, .limits, .selfTest, .setup, .inspectGorush])
    }
}
