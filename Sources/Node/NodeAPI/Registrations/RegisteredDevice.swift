public import Core
public import Delivery

/// The content of a registration as a protocol defines it: the device's token, and the owner's settings. It is sent and stored as JSON.
public protocol RegisteredDevice: Codable, Sendable {
    /// Whether lengths and numbers are within the protocol's limits; registrations with other content are dropped as malformed.
    var isValid: Bool { get }

    /// The push address.
    func address(version: UInt64, end: Timestamp) -> DeviceAddress

    /// A notification of the device.
    ///
    /// - Parameter payload: the protocol's encoding of the notification, as passed to
    ///   ``RegistrationTable/notify(_:of:payload:lifetime:at:times:by:)``.
    func content(of payload: [UInt8]) -> any NotificationContent
}
