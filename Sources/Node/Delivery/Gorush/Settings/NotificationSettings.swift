package import Core

/// The operator's settings for the style and delivery of notifications: `notifications` in the configuration file.
///
/// Every matching rule applies; if several set the same property, the last one wins.
package struct NotificationSettings: Hashable, Sendable {
    package struct Rule: Hashable, Sendable {
        /// For each of these properties, nil matches all.
        package var platforms: Set<Platform>?
        package var kinds: Set<ContentKind>?
        /// APNs topics. A rule with topics matches no other platforms, because their tokens do not identify the app.
        package var apps: Set<String>?
        /// Names of gorush servers.
        package var endpoints: Set<String>?
        /// The protocols; nil: all protocols except those with ``NotificationSubject/isFixed``.
        package var protocols: Set<String>?
        package var style: NotificationStyle

        package init(_ style: NotificationStyle = NotificationStyle()) {
            self.style = style
        }

        /// Whether it selects by properties other than the device's.
        var selectsByContent: Bool { kinds != nil || protocols != nil }

        func matches(_ notification: Notification, _ subject: NotificationSubject) -> Bool {
            matches(notification.platform, apnTopic: notification.apnTopic, subject)
        }

        func matches(_ platform: Platform, apnTopic: String, _ subject: NotificationSubject) -> Bool {
            guard platforms?.contains(platform) ?? true, kinds?.contains(subject.kind) ?? true else { return false }
            if let apps { guard platform == .apn, apps.contains(apnTopic) else { return false } }
            return protocols?.contains(subject.protocolName) ?? !subject.isFixed
        }
    }

    package static let none = NotificationSettings([])

    package let rules: [Rule]

    package init(_ rules: [Rule]) {
        self.rules = rules
    }

    package var isEmpty: Bool { rules.isEmpty }

    /// The rules for one gorush server.
    package func rules(forEndpoint name: String) -> NotificationSettings {
        NotificationSettings(rules.filter { $0.platforms != [.webPush] && $0.endpoints?.contains(name) ?? true })
    }

    /// The messages that a Web Push message replaces; nil if no rule says. Rules for gorush servers do not apply.
    func webPushCollapse(of subject: NotificationSubject) -> NotificationStyle.Collapse? {
        rules.last { $0.style.collapse != nil && $0.endpoints == nil && $0.matches(.webPush, apnTopic: "", subject) }?.style.collapse
    }

    /// The combined style of the rules that match a notification whatever its kind, chat, protocol and age are: the rest of it is left out.
    func constantStyle(for notification: Notification) -> NotificationStyle {
        let subject = NotificationSubject(protocolName: "", kind: .other)
        return rules.reduce(NotificationStyle()) { style, rule in
            rule.selectsByContent || !rule.matches(notification, subject) ? style : style.overlaid(by: rule.style.constant)
        }
    }

    /// The settings by which notifications of one app would differ from each other, as keys of the configuration file. For protocols that prescribe
    /// their texts and data there are none.
    ///
    /// - Parameter fixedProtocols: the names of those protocols.
    package func distinctions(fixedProtocols: Set<String>) -> [String] {
        var names: [String] = []
        for rule in rules where rule.protocols?.isSubset(of: fixedProtocols) != true {
            if rule.kinds != nil { names.append("kinds") }
            if rule.protocols != nil { names.append("protocols") }
            names += rule.style.distinctions
        }
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }

    /// The combined style of the rules that match a notification.
    func style(for notification: Notification) -> NotificationStyle {
        let subject = notification.content.subject
        let style = rules.reduce(NotificationStyle()) { style, rule in
            rule.matches(notification, subject) ? style.overlaid(by: rule.style) : style
        }
        return subject.isFixed ? style.delivery : style
    }
}
