/// A protocol of the node, in stored rows: never changed, never used twice.
package struct ProtocolNumber: RawRepresentable, Hashable, Sendable {
    package let rawValue: Int64
    package init(rawValue: Int64) { self.rawValue = rawValue }
}

/// A device: a row of its protocol's table, which stays the same when the device registers anew.
package struct DeviceID: Hashable, Sendable {
    package let `protocol`: ProtocolNumber
    package let row: Int64

    package init(_ protocol: ProtocolNumber, row: Int64) {
        self.protocol = `protocol`
        self.row = row
    }
}
