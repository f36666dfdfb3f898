import Logging
import NodeMetrics
import Testing

@testable import PushNode

@Suite("What is logged about a minute")
struct MinuteLineTests {
    @Test("An idle minute has no line; a change of the numbers or of a counter has")
    func idleMinutes() {
        var line = MinuteLine()
        #expect(line.metadata(growth: [:], topics: 0, waiting: 0) == nil)
        #expect(line.metadata(growth: [:], topics: 5, waiting: 0) == ["topics": "5", "waiting": "0"])
        #expect(line.metadata(growth: [:], topics: 5, waiting: 0) == nil)
        let active = line.metadata(growth: [.registrationDisplaced: 3], topics: 5, waiting: 0)
        #expect(active == ["topics": "5", "waiting": "0", Counter.registrationDisplaced.name: "3"])
        #expect(line.metadata(growth: [:], topics: 5, waiting: 0) == nil)
        #expect(line.metadata(growth: [:], topics: 5, waiting: 1)?["waiting"] == "1")
    }
}
