public import StatusProtocol

/// Which notifications one of several gorush servers is for.
public struct EndpointRule: Codable, Hashable, Sendable {
    /// As operators call it: in `/readyz`, the log, and on the status page.
    public var name: String
    /// nil: all.
    public var platforms: Set<Platform>?
    /// Of iOS apps, beside ``sandboxTopics``; nil: all. Firebase knows none.
    public var apnTopics: Set<String>?
    /// Apps whose tokens are of Apple's sandbox: gorush is told `development`.
    public var sandboxTopics: Set<String>

    public init(name: String = "gorush", platforms: Set<Platform>? = nil, apnTopics: Set<String>? = nil, sandboxTopics: Set<String> = []) {
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
public struct GorushRouting: Sendable {
    public let rules: [EndpointRule]
    private let isTrivial: Bool

    /// - Precondition: at least one.
    public init(_ rules: [EndpointRule] = [EndpointRule()]) {
        precondition(!rules.isEmpty)
        self.rules = rules
        isTrivial = rules[0].takesAll
    }

    /// Its place in ``rules``; nil when there is none for this app.
    public func endpoint(for platform: Platform, apnTopic: String) -> Int? {
        isTrivial ? 0 : rules.firstIndex { $0.takes(platform, apnTopic) }
    }

    /// Whether the first endpoint takes all: then none is looked for.
    public var hasChoice: Bool { !isTrivial }
}
