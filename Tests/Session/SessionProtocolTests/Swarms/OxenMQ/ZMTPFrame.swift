import NIOCore

/// Frames of ZMTP, written apart from `ZMTPFrames`.
enum ZMTPFrame {
    static let nullGreeting = greeting("NULL")
    static let curveGreeting = greeting("CURVE")

    static func greeting(_ mechanism: String, version: UInt8 = 3) -> [UInt8] {
        [0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, version, 1] + Array(mechanism.utf8)
            + [UInt8](repeating: 0, count: 52 - mechanism.utf8.count)
    }

    static func encode(_ body: [UInt8], flags: UInt8 = 0) -> [UInt8] {
        guard body.count > 255 else { return [flags, UInt8(body.count)] + body }
        return [flags | 2] + withUnsafeBytes(of: UInt64(body.count).bigEndian) { Array($0) } + body
    }

    static func command(_ name: String, _ data: [UInt8] = []) -> [UInt8] { [UInt8(name.utf8.count)] + Array(name.utf8) + data }

    static func metadata(_ type: String = "ROUTER") -> [UInt8] {
        command("Socket-Type", [0, 0, 0, UInt8(type.utf8.count)]) + Array(type.utf8) + command("Identity", [0, 0, 0, 0])
    }

    static func split(_ bytes: [UInt8]) -> [(flags: UInt8, body: [UInt8])] {
        var (reader, frames) = (ByteBuffer(bytes: bytes), [(flags: UInt8, body: [UInt8])]())
        while let flags: UInt8 = reader.readInteger() {
            let length = flags & 2 == 0 ? reader.readInteger(as: UInt8.self).map(Int.init) : reader.readInteger(as: Int.self)
            frames.append((flags, length.flatMap { reader.readBytes(length: $0) } ?? []))
        }
        return frames
    }
}
