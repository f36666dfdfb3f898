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

        func matches(_ notification: Notification, _ subject: NotificationSubject) -> Bool {
            guard platforms?.contains(notification.platform) ?? true, kinds?.contains(subject.kind) ?? true else { return false }
            if let apps { guard notification.platform == .apn, apps.contains(notification.apnTopic) else { return false } }
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
        NotificationSettings(rules.filter { $0.endpoints?.contains(name) ?? true })
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
