package import Core

extension Timestamp {
    /// 8 bytes, big-endian.
    package var bytes: [UInt8] { withUnsafeBytes(of: rawValue.bigEndian, Array.init) }

    package init?(bytes: [UInt8]) {
        guard bytes.count == 8 else { return nil }
        self.init(rawValue: Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) }))
    }
}
