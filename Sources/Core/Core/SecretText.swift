import WakuCrypto

/// Text that must never reach a log, an error or a metric: it prints as `<redacted>`, also inside other values.
///
/// Equality compares bytes, in constant time: strings that are canonically equivalent in Unicode are different secrets.
public protocol SecretText: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// UTF-8.
    var bytes: [UInt8] { get }
    init(bytes: [UInt8])
}

extension SecretText {
    /// The UTF-8 of a string, without Unicode normalization.
    public init(_ string: String) {
        self.init(bytes: Array(string.utf8))
    }

    /// The text itself, where it is needed: posts to gorush, sealed answers, `admin … --reveal`.
    public var revealed: String { String(decoding: bytes, as: UTF8.self) }

    /// Whether there are no bytes. Presence, unlike the text, is not secret.
    public var isEmpty: Bool { bytes.isEmpty }
    /// `<redacted>`, so that interpolation into a log or error message does not reveal the text.
    public var description: String { "<redacted>" }
    /// `<redacted>`, also in collections and other values that contain it.
    public var debugDescription: String { "<redacted>" }
    /// Without children, so that `dump` and reflection do not show the bytes.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Compares the bytes in constant time; the lengths are not secret.
    public static func == (left: Self, right: Self) -> Bool {
        constantTimeEqual(left.bytes, right.bytes)
    }

    /// Hashes the bytes, so that secrets can be keys of dictionaries.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes)
    }
}

/// The identifier of a device at APNs, Firebase or Huawei; for Web Push, the JSON of the subscription.
public struct DeviceToken: SecretText {
    /// UTF-8. The push service defines form and length.
    public let bytes: [UInt8]
    /// - Parameter bytes: UTF-8. Any length, also 0: callers check `isEmpty`.
    public init(bytes: [UInt8]) { self.bytes = bytes }
}
