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
    public init(_ string: String) {
        self.init(bytes: Array(string.utf8))
    }

    /// The text itself, where it is needed: posts to gorush, sealed answers, `admin … --reveal`.
    public var revealed: String { String(decoding: bytes, as: UTF8.self) }

    public var isEmpty: Bool { bytes.isEmpty }
    public var description: String { "<redacted>" }
    public var debugDescription: String { "<redacted>" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    public static func == (left: Self, right: Self) -> Bool {
        constantTimeEqual(left.bytes, right.bytes)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(bytes)
    }
}

/// The identifier of a device at APNs or Firebase.
public struct DeviceToken: SecretText {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }
}
