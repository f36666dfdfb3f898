/// The format of notifications, as the app receives them.
public enum PayloadProfile: String, CaseIterable, Sendable {
    /// The format of servers deployed today.
    case status
    /// The format of these servers in 2024: without the additions for APNs, and with other texts.
    case status2024 = "status-2024"
    /// The published format: equal notifications for several devices are combined.
    case rfc
    /// `status` with the keys of the published format added.
    case combined
    /// A constant text and a random id: nothing by which two notifications for a device differ or are alike.
    case `private`

    package static let `default` = PayloadProfile.combined

    /// The text of ``private``.
    package static let privateText = "You have a new notification"
}
