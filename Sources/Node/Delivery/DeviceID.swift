/// The number of a protocol in stored rows: never changed and never reused.
public struct ProtocolNumber: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int64
    public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A device, as a row of its protocol's table. The row stays the same when the device registers anew.
public struct DeviceID: Hashable, Sendable {
    package let `protocol`: ProtocolNumber
    package let row: Int64

    public init(_ protocol: ProtocolNumber, row: Int64) {
        self.protocol = `protocol`
        self.row = row
    }
}
