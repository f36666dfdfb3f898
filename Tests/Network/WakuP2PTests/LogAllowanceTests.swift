import Core
import TestSupport
import Testing

@testable import WakuP2P

@Suite("Log lines about events that others cause")
struct LogAllowanceTests {
    @Test("Ten lines a minute; the next one has the number of the others")
    func flood() {
        var allowance = LogAllowance()
        let results = (0..<100).map { allowance.take(at: .milliseconds(500 * $0)) }
        #expect(results == Array(repeating: 0, count: 10) + Array(repeating: nil, count: 90))
        #expect(allowance.take(at: .seconds(60)) == 90)
        #expect(allowance.take(at: .seconds(61)) == 0)
    }
}
