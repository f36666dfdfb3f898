/// The number of a protocol in stored rows: never changed and never reused.
public struct ProtocolNumber: RawRepresentable, Hashable, Sendable {
    /// The number as it is stored with each delivery.
    public let rawValue: Int64
    /// From a stored value.
    public init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A device, as a row of its protocol's table. The row stays the same when the device registers anew.
public struct DeviceID: Hashable, Sendable {
    package let `protocol`: ProtocolNumber
    package let row: Int64

    /// The device in a row of the protocol's table.
    public init(_ protocol: ProtocolNumber, row: Int64) {
        self.protocol = `protocol`
        self.row = row
    }
}
