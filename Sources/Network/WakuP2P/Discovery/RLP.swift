/// Writes RLP: see `RLPReader`.
enum RLP {
    static func list(_ content: some Collection<UInt8>) -> [UInt8] {
        header(0xC0, content.count) + content
    }

    static func string(_ bytes: some Collection<UInt8>) -> [UInt8] {
        if bytes.count == 1, let byte = bytes.first, byte < 0x80 { return [byte] }
        return header(0x80, bytes.count) + bytes
    }

    private static func header(_ short: UInt8, _ count: Int) -> [UInt8] {
        if count <= 55 { return [short + UInt8(count)] }
        return count < 256 ? [short + 56, UInt8(count)] : [short + 57, UInt8(count >> 8 & 255), UInt8(count & 255)]
    }
}
