/// oxenmq's framing of one connection, on the client side. Parts are inputs and outputs; the owner has the socket.
///
///     greeting ──[HI]──▶   ◀──[HELLO]── ready      [command, tag, body] ──▶   ◀── [REPLY, tag, parts…]
///                                                   ◀── [command, part…]
///     either ◀──[BYE]── ended                       ◀── [FORBIDDEN …, REPLY, tag]
package struct OxenMQSession: Hashable, Sendable {
    package enum Refusal: String, Hashable, Sendable, CaseIterable {
        case unknownCommand = "UNKNOWNCOMMAND"
        case forbidden = "FORBIDDEN"
        case forbiddenServiceNode = "FORBIDDEN_SN"
        case notAServiceNode = "NOT_A_SERVICE_NODE"
        case noReplyTag = "NO_REPLY_TAG"
    }

    /// Limit of the parts of a valid message.
    package static let maximumPartCount = 16
    static let maximumCommandByteCount = 64

    private enum State: Hashable, Sendable {
        case greeting
        case ready
        case ended
    }

    private var state = State.greeting

    package var isReady: Bool { state == .ready }

    /// The first message to send.
    package static let greeting: [[UInt8]] = [Array("HI".utf8)]
    /// The last message to send.
    package static let farewell: [[UInt8]] = [Array("BYE".utf8)]

    /// A request, which is answered by ``OxenMQClient/Event/reply(tag:parts:)`` or ``OxenMQClient/Event/refused(_:tag:)`` with the same tag.
    package static func request(_ command: String, tag: [UInt8], body: [UInt8]) -> [[UInt8]] {
        [Array(command.utf8), tag, body]
    }

    /// - Parameter parts: The parts of one message, at most one more than ``maximumPartCount``.
    package mutating func receive(_ parts: [[UInt8]]) -> OxenMQClient.Event {
        let byteCount = parts.reduce(0) { $0 + $1.count }
        guard state != .ended else { return .ignored(byteCount: byteCount) }
        guard parts.count <= Self.maximumPartCount else {
            state = .ended
            return .closed(.tooManyParts)
        }
        guard let first = parts.first, 1...Self.maximumCommandByteCount ~= first.count, let word = String(validating: first, as: UTF8.self)
        else { return .ignored(byteCount: byteCount) }
        if let refusal = Refusal(rawValue: word) {
            let isRequest = parts.count > 2 && parts[1].elementsEqual("REPLY".utf8)
            return .refused(refusal, tag: isRequest ? parts[2] : nil, byteCount: byteCount)
        }
        switch (word, state) {
        case ("BYE", _):
            state = .ended
            return .closed(.bye)
        case ("HELLO", .greeting):
            state = .ready
            return .hello
        case ("HELLO", _), ("HI", _), (_, .greeting): return .ignored(byteCount: byteCount)
        case ("REPLY", _):
            guard parts.count > 1 else { return .ignored(byteCount: byteCount) }
            return .reply(tag: parts[1], parts: Array(parts[2...]))
        default:
            return .command(word, parts: Array(parts[1...]))
        }
    }
}
