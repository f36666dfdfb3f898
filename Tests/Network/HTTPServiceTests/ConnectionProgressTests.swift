import NIOCore
import Testing

@testable import HTTPService

/// One test per arrow of the state diagram at ``ConnectionProgress``.
@Suite struct ConnectionProgressTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private let limits = HTTPLimits(connections: 8)
    private var progress: ConnectionProgress

    init() {
        progress = ConnectionProgress(limits: limits, openedAt: start)
    }

    @Test mutating func firstHeadHasItsTimeout() {
        #expect(progress.deadline == start + .seconds(10))
        #expect(!progress.isBusy)
    }

    @Test mutating func bodyHasItsTimeoutFromTheHeadOn() {
        progress.readHead(at: start + .seconds(9))
        #expect(progress.deadline == start + .seconds(39))
        #expect(!progress.isBusy)
    }

    @Test mutating func respondingHasNoTimeout() {
        progress.readHead(at: start)
        progress.readEnd()
        #expect(progress.deadline == nil)
        #expect(progress.isBusy)
    }

    @Test mutating func sendingAResponseTimesOut() {
        progress.readHead(at: start)
        progress.readEnd()
        progress.beganResponse(at: start + .seconds(5))
        #expect(progress.deadline == start + .seconds(65))
        #expect(!progress.isBusy)
    }

    @Test mutating func afterAResponseComesTheIdleTimeout() {
        progress.readHead(at: start)
        progress.readEnd()
        progress.beganResponse(at: start + .seconds(1))
        progress.finishedResponse(at: start + .seconds(2))
        #expect(progress.deadline == start + .seconds(62))
        #expect(!progress.isBusy)
        progress.readHead(at: start + .seconds(50))
        #expect(progress.deadline == start + .seconds(80))
    }

    @Test mutating func pipelinedRequestsAreCounted() {
        for _ in 0..<3 {
            progress.readHead(at: start)
            progress.readEnd()
        }
        // Its client does not wait for responses.
        #expect(!progress.isBusy)
        for _ in 0..<2 {
            progress.beganResponse(at: start)
            progress.finishedResponse(at: start)
        }
        #expect(progress.deadline == nil)
        #expect(progress.isBusy)
    }

    /// A client that reads nothing of them has no more time for several responses than for one.
    @Test mutating func responsesToPipelinedRequestsOverlap() {
        for _ in 0..<2 {
            progress.readHead(at: start)
            progress.readEnd()
        }
        progress.beganResponse(at: start + .seconds(1))
        progress.beganResponse(at: start + .seconds(2))
        #expect(progress.deadline == start + .seconds(61))
        progress.finishedResponse(at: start + .seconds(3))
        #expect(progress.deadline == start + .seconds(63))
        #expect(!progress.isBusy)
        progress.finishedResponse(at: start + .seconds(4))
        #expect(progress.deadline == start + .seconds(64))
    }

    /// A response to an invalid request does not change the timeout of the first head.
    @Test mutating func anErrorThatIsAnsweredBeforeARequest() {
        progress.beganResponse(at: start + .seconds(1))
        progress.finishedResponse(at: start + .seconds(1))
        #expect(progress.deadline == start + .seconds(11))
    }
}
