/// What notifications look like to the app that gets them.
package enum PayloadProfile: String, CaseIterable, Sendable {
    /// As deployed servers write it today.
    case status
    /// As they wrote it in 2024: without the additions for APNs, and with other texts.
    case status2024 = "status-2024"
    /// The published shape: devices that get the same are put together.
    case rfc
    /// `status`, with the published keys beside its own.
    case combined

    package static let `default` = PayloadProfile.combined
}
