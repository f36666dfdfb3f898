import Core
import Testing
import Waku

struct OptionalServiceTests {
    private func moment(_ uptime: Duration) -> Moment {
        Moment(instant: Instant(sinceEpoch: uptime), wallClock: Timestamp(rawValue: 0) + uptime)
    }

    @Test func aMissingServiceIsPaused() {
        var service = OptionalService()
        #expect(service.isAvailable(at: moment(.zero)))
        service.noteMissing(at: moment(.zero))
        #expect(!service.isAvailable(at: moment(.milliseconds(59_999))))
        #expect(service.isAvailable(at: moment(.seconds(60))))
        service.noteMissing(at: moment(.seconds(60)))
        service.noteReconnection()
        #expect(service.isAvailable(at: moment(.seconds(60))))
    }
}
