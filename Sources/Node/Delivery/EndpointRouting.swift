package import Core

/// Which notifications one of several gorush servers is for.
package struct EndpointRule: Codable, Hashable, Sendable {
    /// As operators call it: in `/readyz`, the log, and on the status page.
    package var name: String
    /// nil: all.
    package var platforms: Set<Platform>?
    /// Of iOS apps, beside ``sandboxTopics``; nil: all. Firebase knows none.
    package var apnTopics: Set<String>?
    /// Apps whose tokens are of Apple's sandbox: gorush is told `development`.
    package var sandboxTopics: Set<String>
    /// Services of Session's devices. An endpoint that names some is for these alone; see ``EndpointRouting``.
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

    /// What it takes, it takes without a look at the app.
    var takesAll: Bool { platforms == nil && apnTopics == nil }
}

/// Where notifications go: to the first endpoint whose rule takes them.
///
/// As soon as one endpoint names ``EndpointRule/services``, Session's notifications go only to endpoints that name theirs, and other protocols'
/// only to endpoints that name none: different apps need different Firebase projects, which tokens do not tell.
package struct EndpointRouting: Sendable {
    package let rules: [EndpointRule]
    private let isTrivial: Bool
    private let namesServices: Bool

    /// - Precondition: at least one.
    package init(_ rules: [EndpointRule] = [EndpointRule()]) {
        precondition(!rules.isEmpty)
        self.rules = rules
        namesServices = rules.contains { $0.services != nil }
        isTrivial = rules[0].takesAll && !namesServices
    }

    /// - Parameters:
    ///   - platform: the device's.
    ///   - apnTopic: the app on APNs.
    ///   - service: of a Session device; nil for those of other protocols.
    /// - Returns: Its place in ``rules``; nil when there is none for this app.
    package func endpoint(for platform: Platform, apnTopic: String, service: PushService? = nil) -> Int? {
        guard !isTrivial else { return 0 }
        return rules.firstIndex { rule in
            guard rule.takes(platform, apnTopic) else { return false }
            return !namesServices || (service.map { rule.services?.contains($0) ?? false } ?? (rule.services == nil))
        }
    }

    /// Whether the first endpoint takes all: then none is looked for.
    package var hasChoice: Bool { !isTrivial }
}
