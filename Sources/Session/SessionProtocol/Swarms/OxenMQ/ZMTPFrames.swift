package import NIOCore

/// The bytes of one side of a connection of ZMTP 3.1, without I/O: received bytes in, frames out; frames to send in, bytes out. RFC 23 and 37.
///
///     greeting   FF 0(8) 7F ‖ version 03 01 ‖ mechanism(20, padded with 0) ‖ 1 at a server, else 0 ‖ 0(31)
///     frame      flags(1) ‖ length(1; 8 if long, big-endian) ‖ body      flags: 1 more parts follow, 2 long, 4 command
///     command    length of the name(1) ‖ name ‖ data
///     metadata   (length(1) ‖ name ‖ length(4) ‖ value)…
package struct ZMTPFrames {
    package typealias Frame = (flags: UInt8, body: [UInt8])

    package enum Flag {
        package static let more: UInt8 = 1
        static let long: UInt8 = 2
        package static let command: UInt8 = 4
        /// Of a command in a box of CURVE.
        package static let sealedCommand: UInt8 = 2
    }

    package struct TooLarge: Error {}

    private static let greetingByteCount = 64

    private var inbound = ByteBuffer()
    private var outbound = ByteBuffer()

    /// - Parameters:
    ///   - mechanism: Of the greeting, which is the first to be sent.
    ///   - isServer: Whether this is the server's side.
    package init(mechanism: String, isServer: Bool) {
        outbound.writeBytes([0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 1] + Self.padded(mechanism))
        outbound.writeBytes([isServer ? 1 : 0] + [UInt8](repeating: 0, count: 31))
    }

    private static func padded(_ mechanism: String) -> [UInt8] {
        Array(mechanism.utf8) + [UInt8](repeating: 0, count: 20 - mechanism.utf8.count)
    }

    // MARK: Receiving

    /// The received bytes that no frame has.
    package var inboundByteCount: Int { inbound.readableBytes }

    package mutating func receive(_ bytes: ByteBuffer) {
        if inbound.readableBytes == 0 {
            inbound = bytes
        } else {
            inbound.discardReadBytes()
            inbound.writeImmutableBuffer(bytes)
        }
    }

    /// Whether the received bytes begin with a greeting of this mechanism, which is taken from them; nil until all of it was received.
    package mutating func readGreeting(_ mechanism: String) -> Bool? {
        guard let greeting = inbound.readBytes(length: Self.greetingByteCount) else { return nil }
        return greeting[0] == 0xFF && greeting[9] & 1 == 1 && greeting[10] >= 3 && greeting[12..<32].elementsEqual(Self.padded(mechanism))
    }

    /// The frame at the beginning of the received bytes; nil if its end has not arrived. A frame that is too large is refused at its header.
    package mutating func readFrame(limit: Int) throws(TooLarge) -> Frame? {
        var reader = inbound
        guard let flags: UInt8 = reader.readInteger() else { return nil }
        let length = flags & Flag.long == 0 ? reader.readInteger(as: UInt8.self).map(UInt64.init) : reader.readInteger(as: UInt64.self)
        guard let length else { return nil }
        guard length <= limit else { throw TooLarge() }
        guard let body = reader.readBytes(length: Int(length)) else { return nil }
        inbound = reader
        return (flags, body)
    }

    /// Keeps a few bytes that wait for the rest of their frame without the large buffer that they came in.
    mutating func shrink() {
        if inbound.readableBytes < inbound.storageCapacity / 2 { inbound = ByteBuffer(bytes: inbound.readableBytesView) }
    }

    // MARK: Sending

    package mutating func write(_ body: [UInt8], flags: UInt8) {
        if let length = UInt8(exactly: body.count) {
            outbound.writeMultipleIntegers(flags, length)
        } else {
            outbound.writeMultipleIntegers(flags | Flag.long, UInt64(body.count))
        }
        outbound.writeBytes(body)
    }

    var outboundByteCount: Int { outbound.readableBytes }

    /// The bytes to send; nil if there are none.
    package mutating func takeOutbound() -> ByteBuffer? {
        guard outbound.readableBytes > 0 else { return nil }
        defer { outbound = ByteBuffer() }
        return outbound
    }

    // MARK: Commands

    /// - Parameter name: At most 255 bytes.
    package static func command(_ name: String, _ data: [UInt8] = []) -> [UInt8] { [UInt8(name.utf8.count)] + Array(name.utf8) + data }

    /// The properties of a socket without an identity.
    package static func metadata(socketType: String) -> [UInt8] {
        command("Socket-Type", [0, 0, 0, UInt8(socketType.utf8.count)]) + Array(socketType.utf8) + command("Identity", [0, 0, 0, 0])
    }
}
