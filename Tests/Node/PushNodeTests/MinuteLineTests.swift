import Logging
import NodeMetrics
import Testing

@testable import PushNode

@Suite("The log line of a minute")
struct MinuteLineTests {
    @Test("An idle minute has no line; a change of the numbers or of a counter has")
    func idleMinutes() {
        var line = MinuteLine()
        /// The line as text; nil for none.
        func text(_ growth: [Counter: Int] = [:], topics: Int, waiting: Int) -> [String: String]? {
            line.metadata(growth: growth, topics: topics, waiting: waiting)?.mapValues { "\($0)" }
        }
        #expect(text(topics: 0, waiting: 0) == nil)
        #expect(text(topics: 5, waiting: 0) == ["topics": "5", "waiting": "0"])
        #expect(text(topics: 5, waiting: 0) == nil)
        let active = text([.registrationDisplaced: 3], topics: 5, waiting: 0)
        #expect(active == ["topics": "5", "waiting": "0", Counter.registrationDisplaced.name: "3"])
        #expect(text(topics: 5, waiting: 0) == nil)
        #expect(text(topics: 5, waiting: 1)?["waiting"] == "1")
    }
}
