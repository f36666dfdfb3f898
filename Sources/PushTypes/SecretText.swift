import WakuCrypto

/// Text that must never reach a log, an error or a metric: it prints as `<redacted>`, also inside of other values.
///
/// Equality is by bytes, in constant time: two strings that Unicode holds for equal are different secrets here.
public protocol SecretText: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// UTF-8.
    var bytes: [UInt8] { get }
    init(bytes: [UInt8])
}

extension SecretText {
    public init(_ string: String) {
        self.init(bytes: Array(string.utf8))
    }

    /// The text itself, for the places that need it: gorush, a sealed answer, an operator who asked to see it.
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

/// What APNs or Firebase knows a device by.
public struct DeviceToken: SecretText {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }
}
