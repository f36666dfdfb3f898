@testable import WakuPushCommands
import Testing

struct ServiceNoticesTests {
    private var notices = ServiceNotices()

    @Test mutating func fromStartToReady() {
        #expect(notices.next(isListening: false, obstacles: []) == "STATUS=Starting")
        #expect(notices.next(isListening: false, obstacles: ["relay: not yet"]) == nil)
        #expect(notices.next(isListening: true, obstacles: []) == "READY=1\nSTATUS=Ready")
        #expect(notices.next(isListening: true, obstacles: []) == nil)
    }

    /// The service is ready as soon as it listens, regardless of its neighbours, and reports that once.
    @Test mutating func obstacles() {
        let both = "Running, not ready: relay: away; gorush: busy"
        #expect(notices.next(isListening: true, obstacles: ["relay: away", "gorush: busy"]) == "READY=1\nSTATUS=" + both)
        #expect(notices.next(isListening: true, obstacles: ["relay: away", "gorush: busy"]) == nil)
        #expect(notices.next(isListening: true, obstacles: []) == "STATUS=Ready")
        #expect(notices.next(isListening: true, obstacles: ["relay: away"]) == "STATUS=Running, not ready: relay: away")
    }

    /// Text of a neighbour can't become another assignment.
    @Test mutating func obstaclesOfManyLines() {
        let notice = notices.next(isListening: true, obstacles: ["relay: a\nMAINPID=1\r\nb\u{2028}c"])
        #expect(notice == "READY=1\nSTATUS=Running, not ready: relay: a MAINPID=1  b c")
    }

    @Test mutating func longObstacles() {
        let notice = notices.next(isListening: true, obstacles: [String(repeating: "ü", count: 5_000)])
        #expect(notice?.unicodeScalars.count == "READY=1\nSTATUS=".count + 1_000)
    }
}
