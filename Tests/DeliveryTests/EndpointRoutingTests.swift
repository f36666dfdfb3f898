import Delivery
import Gorush
import PushTypes
import StatusProtocol
import TestSupport
import Testing

@Suite("The choice among gorush servers")
struct EndpointRoutingTests {
    @Test("is none where the first takes all")
    func single() {
        let routing = EndpointRouting([EndpointRule(), EndpointRule(name: "never", platforms: [.apn])])
        #expect(!routing.hasChoice)
        #expect(routing.endpoint(for: .apn, apnTopic: "anything") == 0)
        #expect(routing.endpoint(for: .firebase, apnTopic: "") == 0)
    }

    @Test("goes by platform and app, to the first that takes both")
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
        // Firebase has no such topics: what clients put there does not count.
        #expect(routing.endpoint(for: .firebase, apnTopic: "im.status") == 2)
    }

    @Test("may leave a platform out")
    func none() {
        #expect(EndpointRouting([EndpointRule(platforms: [.firebase])]).endpoint(for: .apn, apnTopic: "im.status") == nil)
    }
}
