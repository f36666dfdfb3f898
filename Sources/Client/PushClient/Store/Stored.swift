import Foundation
import Core
import StatusProtocol
import WakuCrypto

/// A value stored as bytes in a record.
protocol StoredValue: Hashable, Sendable {
    init?(stored bytes: [UInt8])
    var storedBytes: [UInt8] { get }
}

/// Encodes a property as base64. Keys and tokens are not `Codable` themselves, so that they are not encoded by accident.
@propertyWrapper
struct Stored<Value: StoredValue>: Codable, Hashable, Sendable {
    var wrappedValue: Value

    init(wrappedValue: Value) {
        self.wrappedValue = wrappedValue
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let data = try container.decode(Data.self)
        guard let value = Value(stored: Array(data)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a \(Value.self)")
        }
        wrappedValue = value
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Data(wrappedValue.storedBytes))
    }
}

extension PublicKey: StoredValue {
    init?(stored bytes: [UInt8]) {
        guard let key = try? PublicKey(parsing: bytes) else { return nil }
        self = key
    }

    var storedBytes: [UInt8] { compressed }
}

extension SecretText {
    init?(stored bytes: [UInt8]) { self.init(bytes: bytes) }
    var storedBytes: [UInt8] { bytes }
}

extension AccessToken: StoredValue {}
extension DeviceToken: StoredValue {}

extension InstallationID: StoredValue {
    init?(stored bytes: [UInt8]) { self.init(bytes: bytes) }
    var storedBytes: [UInt8] { bytes }
}

extension Timestamp: StoredValue {
    init?(stored bytes: [UInt8]) {
        guard bytes.count == 8 else { return nil }
        self.init(rawValue: Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) }))
    }

    var storedBytes: [UInt8] { withUnsafeBytes(of: rawValue.bigEndian, Array.init) }
}

extension Array: StoredValue where Element: StoredValue {
    /// Each element is preceded by its length, 4 bytes big-endian.
    init?(stored bytes: [UInt8]) {
        self.init()
        var rest = bytes[...]
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count, let element = Element(stored: Array<UInt8>(rest.prefix(count))) else { return nil }
            append(element)
            rest = rest.dropFirst(count)
        }
    }

    var storedBytes: [UInt8] {
        reduce(into: []) { bytes, element in
            let part = element.storedBytes
            bytes += Swift.withUnsafeBytes(of: UInt32(part.count).bigEndian, Array<UInt8>.init)
            bytes += part
        }
    }
}

extension Optional: StoredValue where Wrapped: StoredValue {
    /// A byte 0 for nil; otherwise a byte 1, then the value.
    init?(stored bytes: [UInt8]) {
        switch bytes.first {
        case 0: self = .none
        case 1:
            guard let value = Wrapped(stored: Array<UInt8>(bytes.dropFirst())) else { return nil }
            self = .some(value)
        default: return nil
        }
    }

    var storedBytes: [UInt8] { map { [1] + $0.storedBytes } ?? [0] }
}

struct StoredData: StoredValue {
    var bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
    init?(stored bytes: [UInt8]) { self.bytes = bytes }
    var storedBytes: [UInt8] { bytes }
}

/// Encodes bytes as base64.
@propertyWrapper
struct StoredBytes: Codable, Hashable, Sendable {
    var wrappedValue: [UInt8]

    init(wrappedValue: [UInt8]) {
        self.wrappedValue = wrappedValue
    }

    init(from decoder: any Decoder) throws {
        wrappedValue = Array(try decoder.singleValueContainer().decode(Data.self))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(Data(wrappedValue))
    }
}
