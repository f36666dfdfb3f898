import Testing
import Waku

@testable import NwakuRelay

struct PublishRouteTests {
    @Test func asksLightpushAgainAfterAWhileOrAReconnection() {
        func moment(_ seconds: Int) -> Moment { Moment(uptime: .seconds(seconds), clock: Timestamp(rawValue: 0)) }
        var route = PublishRoute()
        #expect(route.triesLightpush(at: moment(0)))
        route.lightpushIsMissing(at: moment(0))
        #expect(!route.triesLightpush(at: moment(59)))
        #expect(route.triesLightpush(at: moment(60)))
        route.lightpushIsMissing(at: moment(60))
        route.nodeIsBack()
        #expect(route.triesLightpush(at: moment(61)))
    }
}
