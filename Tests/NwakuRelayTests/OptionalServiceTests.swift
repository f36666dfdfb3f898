import Primitives
import TestSupport
import Testing
import Waku

@testable import NwakuRelay

struct OptionalServiceTests {
    private func moment(_ uptime: Duration) -> Moment {
        Moment(instant: Instant(sinceEpoch: uptime), wallClock: Timestamp(rawValue: 0) + uptime)
    }

    @Test func isLeftForAWhileOnceItIsNotServed() {
        var service = OptionalService()
        #expect(service.isTried(at: moment(.zero)))
        service.isMissing(at: moment(.zero))
        #expect(!service.isTried(at: moment(.milliseconds(59_999))))
        #expect(service.isTried(at: moment(.seconds(60))))
        service.isMissing(at: moment(.seconds(60)))
        service.nodeIsBack()
        #expect(service.isTried(at: moment(.seconds(60))))
    }
}
