@testable import WakuPushCommands
import Testing

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
}
