import Delivery
import Core
import Testing
import WakuCrypto

@Suite("Routing to gorush servers")
struct EndpointRoutingTests {
    @Test("is not needed if the first endpoint accepts everything")
    func single() {
        let routing = EndpointRouting([EndpointRule(), EndpointRule(name: "never", platforms: [.apn])])
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

    @Test("tells which platforms have an endpoint for some app")
    func platforms() {
        let apple = EndpointRouting([EndpointRule(platforms: [.apn], apnTopics: ["im.status"])])
        #expect(Platform.allCases.filter(apple.serves) == [.apn])
        #expect(Platform.allCases.filter(EndpointRouting([EndpointRule()]).serves) == Platform.ofGorush)
        #expect(Platform.allCases.filter(EndpointRouting([EndpointRule(services: [.firebase])]).serves).isEmpty)
        let webPush = EndpointRouting([GorushEndpoint.none.rule], webPushKeys: [P256PrivateKey.generate().publicKey])
        #expect(Platform.allCases.filter(webPush.serves) == [.webPush])
    }

    @Test("sends Session's services to the endpoints that name them, and other devices to the others")
    func services() {
        let routing = EndpointRouting([
            EndpointRule(name: "status"), EndpointRule(name: "session apple", services: [.apns, .apnsSandbox]),
            EndpointRule(name: "session google", services: [.firebase]),
        ])
        #expect(routing.endpoint(for: .apn, apnTopic: "im.status") == 0)
        #expect(routing.endpoint(for: .firebase, apnTopic: "") == 0)
        #expect(routing.endpoint(for: .apn, apnTopic: "com.session", service: .apns) == 1)
        #expect(routing.endpoint(for: .apn, apnTopic: "com.session", service: .apnsSandbox) == 1)
        #expect(routing.endpoint(for: .firebase, apnTopic: "", service: .firebase) == 2)
        #expect(routing.endpoint(for: .huawei, apnTopic: "", service: .huawei) == nil)
    }

    @Test("uses endpoints for all protocols while none names services")
    func withoutServices() {
        let routing = EndpointRouting([EndpointRule(name: "apple", platforms: [.apn]), EndpointRule(name: "other")])
        #expect(routing.endpoint(for: .apn, apnTopic: "com.session", service: .apnsSandbox) == 0)
        #expect(routing.endpoint(for: .huawei, apnTopic: "", service: .huawei) == 1)
    }

    @Test("has no endpoint for Apple devices of Session without a topic, and takes those of other protocols")
    func withoutTopic() {
        let routing = EndpointRouting()
        let unserved = PushService.ofGorush.filter { routing.endpoint(for: $0.platform, apnTopic: "", service: $0) == nil }
        #expect(unserved == [.apns, .apnsSandbox])
        #expect(routing.endpoint(for: .apn, apnTopic: "com.session", service: .apns) == 0)
        // gorush may have a certificate for one app, which names its topic.
        #expect(routing.endpoint(for: .apn, apnTopic: "") == 0)
    }

    @Test("has no endpoint for other devices if all endpoints name services")
    func onlyServices() {
        let routing = EndpointRouting([EndpointRule(services: [.firebase])])
        #expect(routing.endpoint(for: .firebase, apnTopic: "") == nil)
        #expect(routing.endpoint(for: .firebase, apnTopic: "", service: .firebase) == 0)
    }
}
