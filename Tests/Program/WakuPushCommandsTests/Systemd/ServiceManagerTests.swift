import Foundation
import TestSupport
import Testing

@testable import WakuPushCommands

struct ServiceManagerTests {
    private func watchdog(_ environment: [String: String]) -> Duration? {
        ServiceManager(environment: environment.merging(["NOTIFY_SOCKET": "@x"]) { old, _ in old }, processID: 42)?.watchdog
    }

    @Test func withoutASocket() {
        #expect(ServiceManager(environment: [:], processID: 42) == nil)
        #expect(ServiceManager(environment: ["WATCHDOG_USEC": "1000000"], processID: 42) == nil)
        #expect(ServiceManager(environment: ["NOTIFY_SOCKET": "nonsense"], processID: 42) == nil)
    }

    @Test func theWatchdog() {
        #expect(watchdog([:]) == nil)
        #expect(watchdog(["WATCHDOG_USEC": "30000000"]) == .seconds(30))
        #expect(watchdog(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"]) == .seconds(30))
        #expect(watchdog(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "43"]) == nil)
    }

    @Test(arguments: ["", "0", "-1", "soon", "99999999999999999999"])
    func aWatchdogThatCannotBeRead(text: String) {
        #expect(watchdog(["WATCHDOG_USEC": text]) == nil)
    }

    @Test("A start that takes long extends its time limit, and a short one does not")
    func longStart() throws {
        let listener = try DatagramListener("@waku-push-test/" + UUID().uuidString)
        let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": listener.address], processID: 42))
        let deadline = ContinuousClock.now + .seconds(60) * TestTimeout.factor
        let notice = manager.extendingStart(after: .milliseconds(1)) { () -> String? in
            while ContinuousClock.now < deadline {
                if let notice = listener.next() { return notice }
                usleep(1000)
            }
            return nil
        }
        #expect(notice == "EXTEND_TIMEOUT_USEC=90000000\nSTATUS=Starting: opening the database")
        #expect(throws: CancellationError.self) {
            try manager.extendingStart(after: .seconds(60)) { () throws -> Void in throw CancellationError() }
        }
        #expect(listener.next() == nil)
    }
}
