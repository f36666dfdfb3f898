import Delivery
import Core
import NodeAPI
import NodeAssembly

extension NotificationSettings {
    /// More rules would slow down every notification.
    static let ruleLimit = 100

    /// - Parameters:
    ///   - entries: `notifications` of the configuration file.
    ///   - endpoints: names of gorush servers.
    /// - Throws: ``CommandFailure`` with file and line of the first error.
    init(_ entries: [ConfigurationFile.Entry], endpoints: [String]) throws(CommandFailure) {
        if entries.count > Self.ruleLimit {
            throw CommandFailure(.data, "\(entries[Self.ruleLimit].place): at most \(Self.ruleLimit) entries are allowed in notifications")
        }
        self.init(
            try entries.map { entry throws(CommandFailure) in try NotificationEntry(entry: entry, endpoints: endpoints).rule() })
    }
}

/// Reads an entry of `notifications`.
struct NotificationEntry {
    /// Protocols of the node, by their names.
    static var protocols: [String] { NodeAssembly.protocols.map(\.name) }
    /// Those of them that prescribe texts and data.
    static var fixedProtocols: Set<String> { Set(NodeAssembly.protocols.filter(\.prescribesContent).map(\.name)) }
    /// The rule's only protocol, if that prescribes texts and data.
    private static func fixedProtocol(of rule: NotificationSettings.Rule) -> String? {
        guard let name = rule.protocols?.first, rule.protocols?.count == 1 else { return nil }
        return fixedProtocols.contains(name) ? name : nil
    }

    private static let textByteLimit = 500
    private static let nameByteLimit = 200
    private static let badges = 0...9999
    /// Firebase's maximum: 28 days.
    private static let timeToLiveLimit = 2_419_200

    /// Entries that each have one of an entry's selectors and all its settings, or all selectors and one setting: an error in one does not hide
    /// the next.
    static func parts(of entry: ConfigurationFile.Entry) -> [ConfigurationFile.Entry] {
        let selectors = NotificationKey.allCases.filter(\.isSelector).map(\.rawValue)
        return entry.options.keys.sorted().map { key in
            let isSelector = selectors.contains(key)
            return ConfigurationFile.Entry(
                options: entry.options.filter { $0.key == key || selectors.contains($0.key) != isSelector }, place: entry.place)
        }
    }

    let entry: ConfigurationFile.Entry
    /// Names of gorush servers.
    let endpoints: [String]

    func rule() throws(CommandFailure) -> NotificationSettings.Rule {
        guard NotificationKey.allCases.contains(where: { !$0.isSelector && entry.options[$0.rawValue] != nil }) else {
            throw CommandFailure(
                .data, "\(entry.place): this entry of notifications sets nothing: add a setting such as priority, or remove it")
        }
        var rule = NotificationSettings.Rule()
        rule.platforms = try selection(.platforms, among: Platform.allCases.map(\.name)).map { names in
            Set(Platform.allCases.filter { names.contains($0.name) })
        }
        rule.kinds = try selection(.kinds, among: ContentKind.allCases.map(\.rawValue)).map { Set($0.compactMap(ContentKind.init)) }
        rule.apps = list(.apps).map(Set.init)
        rule.endpoints = try selection(.endpoints, among: endpoints)
        rule.protocols = try selection(.protocols, among: Self.protocols)
        rule.style = try style()
        try checkEffects(of: rule)
        return rule
    }

    private func style() throws(CommandFailure) -> NotificationStyle {
        var style = NotificationStyle()
        style.title = try text(.title, orKey: .titleLocKey)
        style.body = try text(.body, orKey: .locKey)
        style.sound = try name(.sound)
        style.badge = try number(.badge, Self.badges)
        style.category = try name(.category)
        style.channel = try name(.channel)
        style.isMutable = try flag(.mutableContent)
        style.interruptionLevel = try choice(.interruptionLevel)
        style.priority = try choice(.priority)
        style.timeToLive = try timeToLive()
        style.collapse = try choice(.collapse)
        style.thread = try choice(.thread)
        style.isForSandbox = try flag(.development)
        style.deepLink = try deepLink()
        style.reportTag = try name(.reportTag)
        return style
    }

    // MARK: Settings without effect

    /// Rejects settings that can't apply to any notification that the entry selects.
    private func checkEffects(of rule: NotificationSettings.Rule) throws(CommandFailure) {
        if rule.apps != nil, rule.platforms?.contains(.apn) == false {
            throw failure(.apps, "are APNs topics, and this entry is not for apn: select apps of other platforms by their endpoints")
        }
        if rule.endpoints != nil, rule.platforms == [.webPush] {
            throw failure(.endpoints, "are gorush servers, and this entry is only for webpush: remove them")
        }
        let platforms = rule.apps == nil ? rule.platforms ?? Set(Platform.allCases) : [.apn]
        for key in NotificationKey.allCases where !key.isSelector && entry.options[key.rawValue] != nil {
            if key.platforms.isDisjoint(with: platforms) {
                throw failure(key, "has an effect only on \(Self.list(key.platforms)): remove it, or change what the entry is for")
            }
            if let fixed = Self.fixedProtocol(of: rule), !key.isOfDelivery {
                throw failure(
                    key, "does not apply to \(fixed), whose notifications are fixed: only ttl, collapse and bi-tag do")
            }
        }
        if let fixed = Self.fixedProtocol(of: rule), rule.style.collapse == .chat {
            throw failure(.collapse, "can't be chat for \(fixed), whose messages name no chat: use none or message")
        }
        if case .text("")? = rule.style.body, platforms.contains(.apn) {
            throw failure(.body, "may be empty only with platforms: [firebase], or huawei: an iPhone shows no alert without a text")
        }
    }

    private static func list(_ platforms: Set<Platform>) -> String {
        Platform.allCases.filter(platforms.contains).map(\.name).joined(separator: " and ")
    }

    // MARK: Values

    private func failure(_ key: NotificationKey, _ problem: String) -> CommandFailure {
        CommandFailure(.data, "\(entry.options[key.rawValue]?.place ?? entry.place): \(key.rawValue) \(problem)")
    }

    /// nil if the key is absent.
    private func list(_ key: NotificationKey) -> [String]? { entry.options[key.rawValue]?.values }

    /// nil if the key is absent.
    private func selection(_ key: NotificationKey, among names: [String]) throws(CommandFailure) -> Set<String>? {
        guard let values = list(key) else { return nil }
        for value in values where !names.contains(value) {
            throw failure(key, "has an unknown name, \(value): use \(names.joined(separator: ", "))")
        }
        guard !values.isEmpty else { throw failure(key, "is empty: name some, or remove it to select all") }
        return Set(values)
    }

    private func value(_ key: NotificationKey) throws(CommandFailure) -> String? {
        guard let values = list(key) else { return nil }
        guard values.count == 1 else { throw failure(key, "must be one value, not a list") }
        return values[0]
    }

    private func name(_ key: NotificationKey, byteLimit: Int = nameByteLimit) throws(CommandFailure) -> String? {
        guard let text = try value(key) else { return nil }
        guard text.utf8.count <= byteLimit else { throw failure(key, "is longer than \(byteLimit) bytes: shorten it") }
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) else {
            throw failure(key, "has control characters: remove them")
        }
        return text
    }

    private func text(_ key: NotificationKey, orKey locKey: NotificationKey) throws(CommandFailure) -> NotificationStyle.Text? {
        let text = try name(key, byteLimit: Self.textByteLimit)
        guard let stringKey = try name(locKey) else { return text.map { .text($0) } }
        guard text == nil else { throw failure(locKey, "and \(key.rawValue) are mutually exclusive: remove one of them") }
        guard !stringKey.isEmpty else { throw failure(locKey, "is empty: give a key of the app's string resources") }
        return .localized(key: stringKey)
    }

    private func number(_ key: NotificationKey, _ range: ClosedRange<Int>) throws(CommandFailure) -> Int? {
        guard let text = try value(key) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw failure(key, "must be \(range.inWords)")
        }
        return number
    }

    private func flag(_ key: NotificationKey) throws(CommandFailure) -> Bool? {
        guard let text = try value(key) else { return nil }
        guard let flag = SwitchArgument(argument: text) else { throw failure(key, "must be true or false") }
        return flag == .on
    }

    private func choice<Choice: RawRepresentable & CaseIterable>(
        _ key: NotificationKey
    ) throws(CommandFailure) -> Choice? where Choice.RawValue == String {
        guard let text = try value(key) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw failure(key, "can't be \(text): use \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return choice
    }

    private func timeToLive() throws(CommandFailure) -> NotificationStyle.TimeToLive? {
        guard let text = try value(.timeToLive) else { return nil }
        if text == "remaining" { return .remaining }
        if ["0", "0s"].contains(text) { return .seconds(0) }
        guard let duration = DurationArgument(argument: text)?.duration, duration.components.attoseconds == 0,
            duration.components.seconds <= Self.timeToLiveLimit
        else { throw failure(.timeToLive, "must be remaining, 0, or whole seconds up to 28 days, such as 90s, 10m, 12h or 7d") }
        return .seconds(Int(duration.components.seconds))
    }

    private func deepLink() throws(CommandFailure) -> DeepLinkTemplate? {
        guard let text = try name(.deepLink, byteLimit: Self.textByteLimit) else { return nil }
        guard !text.contains(where: \.isWhitespace) else { throw failure(.deepLink, "has spaces: write them as %20") }
        do throws(DeepLinkTemplate.Problem) {
            return try DeepLinkTemplate(parsing: text)
        } catch {
            switch error {
            case .unknownPlaceholder(let name): throw failure(.deepLink, "has an unknown placeholder {\(name)}: use {kind} or {chat}")
            case .unpairedBrace: throw failure(.deepLink, "has a brace without its counterpart: placeholders are {kind} and {chat}")
            }
        }
    }
}
