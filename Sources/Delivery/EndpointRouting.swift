package import PushTypes
package import PushTypes

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

    package init(name: String = "gorush", platforms: Set<Platform>? = nil, apnTopics: Set<String>? = nil, sandboxTopics: Set<String> = []) {
        self.name = name
        self.platforms = platforms
        self.apnTopics = apnTopics
        self.sandboxTopics = sandboxTopics
    }

    func takes(_ platform: Platform, _ apnTopic: String) -> Bool {
        guard platforms?.contains(platform) ?? true else { return false }
        return platform != .apn || apnTopics?.contains(apnTopic) ?? true || sandboxTopics.contains(apnTopic)
    }

    /// What it takes, it takes without a look at the app.
    var takesAll: Bool { platforms == nil && apnTopics == nil }
}

/// Where notifications go: to the first endpoint whose rule takes them.
package struct EndpointRouting: Sendable {
    package let rules: [EndpointRule]
    private let isTrivial: Bool

    /// - Precondition: at least one.
    package init(_ rules: [EndpointRule] = [EndpointRule()]) {
        precondition(!rules.isEmpty)
        self.rules = rules
        isTrivial = rules[0].takesAll
    }

    /// Its place in ``rules``; nil when there is none for this app.
    package func endpoint(for platform: Platform, apnTopic: String) -> Int? {
        isTrivial ? 0 : rules.firstIndex { $0.takes(platform, apnTopic) }
    }

    /// Whether the first endpoint takes all: then none is looked for.
    package var hasChoice: Bool { !isTrivial }
}
