package import Core
package import WakuCrypto

/// Selects the notifications for one of several gorush servers.
package struct EndpointRule: Codable, Hashable, Sendable {
    /// The operator's name for the endpoint: in `/readyz`, the log, and on the status page.
    package var name: String
    /// The accepted platforms; nil: all.
    package var platforms: Set<Platform>?
    /// The APNs topics of iOS apps, in addition to ``sandboxTopics``; nil: all. Does not apply to other platforms.
    package var apnTopics: Set<String>?
    /// APNs topics of apps with tokens of Apple's sandbox: gorush is told `development`.
    package var sandboxTopics: Set<String>
    /// Services of Session devices. An endpoint with services gets only their notifications; see ``EndpointRouting``.
    package var services: Set<PushService>?

    package init(
        name: String = "gorush", platforms: Set<Platform>? = nil, apnTopics: Set<String>? = nil, sandboxTopics: Set<String> = [],
        services: Set<PushService>? = nil
    ) {
        self.name = name
        self.platforms = platforms
        self.apnTopics = apnTopics
        self.sandboxTopics = sandboxTopics
        self.services = services
    }

    func takes(_ platform: Platform, _ apnTopic: String) -> Bool {
        guard platforms?.contains(platform) ?? true else { return false }
        return platform != .apn || apnTopics?.contains(apnTopic) ?? true || sandboxTopics.contains(apnTopic)
    }
}

/// The endpoint of a delivery.
enum EndpointID: Hashable, Sendable {
    /// The index in ``EndpointRouting/rules``.
    case gorush(Int)
    /// A push service of Web Push.
    case webPush(WebPushOrigin)
    /// No endpoint of this node takes the delivery, or the node does not serve its protocol. It stays until it expires, its device registers for
    /// something that is served, or another node owns the device.
    case unroutable

    /// nil for other endpoints.
    var gorushIndex: Int? {
        if case .gorush(let index) = self { index } else { nil }
    }

    var isPushService: Bool {
        if case .webPush = self { true } else { false }
    }
}

/// Routes each notification to the first endpoint whose rule accepts it.
///
/// Once any endpoint has ``EndpointRule/services``, Session notifications go only to endpoints that list their service, and other notifications only
/// to endpoints without services: different apps need different Firebase projects, and tokens do not identify the project.
package struct EndpointRouting: Sendable {
    package let rules: [EndpointRule]
    /// The VAPID keys of a node that posts to Web Push services, the current one first; empty for others.
    package let webPushKeys: [P256PublicKey]
    private let namesServices: Bool

    /// - Precondition: at least one.
    package init(_ rules: [EndpointRule] = [EndpointRule()], webPushKeys: [P256PublicKey] = []) {
        precondition(!rules.isEmpty)
        self.rules = rules
        self.webPushKeys = webPushKeys
        namesServices = rules.contains { $0.services != nil }
    }

    /// - Parameter service: the push service of a Session device; nil for other protocols.
    /// - Returns: The index in ``rules``; nil when no endpoint serves this app, and for an Apple device of Session without a topic, which APNs would
    ///   refuse.
    package func endpoint(for platform: Platform, apnTopic: String, service: PushService? = nil) -> Int? {
        guard !apnTopic.isEmpty || service?.isApple != true else { return nil }
        return rules.firstIndex { rule in
            guard rule.takes(platform, apnTopic) else { return false }
            return !namesServices || (service.map { rule.services?.contains($0) ?? false } ?? (rule.services == nil))
        }
    }

    /// Whether devices of this platform have an endpoint, for some app at least. Session's devices may need another: see ``EndpointRule/services``.
    package func serves(_ platform: Platform) -> Bool {
        switch platform {
        case .webPush: postsWebPush
        case .apn, .firebase, .huawei: rules.contains { $0.services == nil && $0.platforms?.contains(platform) ?? true }
        }
    }

    /// Whether this node posts to Web Push services.
    package var postsWebPush: Bool { !webPushKeys.isEmpty }

    func endpoint(for address: DeviceAddress) -> EndpointID {
        switch address.target {
        case .gorush(let device):
            endpoint(for: device.platform, apnTopic: device.apnTopic, service: device.service).map(EndpointID.gorush) ?? .unroutable
        case .webPush(let subscription): postsWebPush ? .webPush(subscription.origin) : .unroutable
        }
    }
}
