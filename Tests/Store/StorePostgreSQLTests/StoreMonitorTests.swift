import Storage
import Testing

@testable import StorePostgreSQL

@Suite struct StoreMonitorTests {
    private struct StepFailed: Error {}

    private let monitor: StoreMonitor

    init() throws { monitor = StoreMonitor(try PostgreSQLAddress("host=db.example dbname=push")) }

    @Test func anErrorOfACommandSaysNothingAboutTheDatabase() {
        _ = monitor.readFailed(StepFailed())
        #expect(monitor.failure == nil)
    }

    @Test func aLostConnectionIsReportedUntilTheServerAnswers() {
        _ = monitor.readFailed(PostgreSQLError.connectionLost())
        #expect(monitor.failure?.hasPrefix("the connection to PostgreSQL") == true && !monitor.wantsCheck)
        #expect(monitor.outage == monitor.failure)
        monitor.reached(nil)
        #expect(monitor.failure == nil)
    }

    @Test func aDamagedRowIsReportedUntilAllRowsWereChecked() {
        _ = monitor.readFailed(UnexpectedValue())
        monitor.reached(nil)
        #expect(monitor.failure?.hasPrefix("a row of PostgreSQL") == true)
        // No other node could read it either.
        #expect(monitor.outage == nil)
        monitor.checked(nil)
        #expect(monitor.failure == nil)
    }
}
