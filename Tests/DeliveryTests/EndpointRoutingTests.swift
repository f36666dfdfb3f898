import Delivery
import Gorush
import PushTypes
import StatusProtocol
import TestSupport
import Testing

@Suite("Routing to gorush servers")
struct EndpointRoutingTests {
    @Test("is not needed if the first endpoint accepts everything")
    func single() {
        let routing = EndpointRouting([EndpointRule(), EndpointRule(name: "never", platforms: [.apn])])
        #expect(!routing.hasChoice)
        #expect(routing.endpoint(for: .apn, apnTopic: "anything") == 0)
        #expect(routing.endpoint(for: .firebase, apnTopic: "") == 0)
    }

    @Test("selects the first endpoint for platform and app")
    func rules() {
        let routing = EndpointRouting([
            EndpointRule(name: "status", platforms: [.apn], apnTopics: ["im.status"], sandboxTopics: ["im.status.pr"]),
            EndpointRule(name: "desk", platforms: [.apn], apnTopics: ["im.desk", "im.status"]),
            EndpointRule(name: "google", platforms: [.firebase], apnTopics: []),
        ])
        #expect(routing.hasChoice)
        #expect(routing.endpoint(for: .apn, apnTopic: "im.status") == 0)
        #expect(routing.endpoint(for: .apn, apnTopic: "im.status.pr") == 0)
        #expect(routing.endpoint(for: .apn, apnTopic: "im.desk") == 1)
        #expect(routing.endpoint(for: .apn, apnTopic: "im.other") == nil)
        #expect(routing.endpoint(for: .apn, apnTopic: "IM.STATUS") == nil)
        // Firebase has no such topics: clients' values are ignored.
        #expect(routing.endpoint(for: .firebase, apnTopic: "im.status") == 2)
    }

    @Test("may leave a platform without an endpoint")
    func none() {
        #expect(EndpointRouting([EndpointRule(platforms: [.firebase])]).endpoint(for: .apn, apnTopic: "im.status") == nil)
    }
}
