/// The number of a protocol in stored rows: never changed and never reused.
package struct ProtocolNumber: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A device, as a row of its protocol's table. The row stays the same when the device registers anew.
package struct DeviceID: Hashable, Sendable {
    package let `protocol`: ProtocolNumber
    package let row: Int64

    package init(_ protocol: ProtocolNumber, row: Int64) {
        self.protocol = `protocol`
        self.row = row
    }
}
