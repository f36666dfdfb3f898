import Foundation
import HTTPService
import Hummingbird
import Logging
import NIOCore
import PushTypes
import StatusProtocol
import Synchronization
import TestSupport
import WakuCrypto

/// Takes what daemons post to `/api/push`, as gorush does. Outlives them.
///
/// What is notified has its ``DeliveryID`` for a message, and each daemon has a URL with its number in it: so it is known who posted what.
final class GorushStandIn: Sendable {
    /// How it does, at present.
    enum Mood: Sendable {
        /// Takes everything, and replies after so many milliseconds.
        case well(ClosedRange<Int>)
        /// Takes nothing: 503.
        case failing
    }

    struct Taken: Sendable {
        let delivery: DeliveryID
        let token: String
    }

    struct Events: Sendable {
        /// They were posted, and will be taken.
        let posted: @Sendable ([Taken], _ daemon: Int) -> Void
        /// The reply is about to leave.
        let replied: @Sendable ([Taken], _ daemon: Int) -> Void
        /// It can't be read.
        let unreadable: @Sendable (String) -> Void
    }

    private struct Body: Decodable {
        struct Entry: Decodable {
            struct Content: Decodable {
                /// nil in notifications of version 0.1.
                let encryptedMessage: String?
                let message: String
            }
            let tokens: [String]
            let data: Content
        }
        let notifications: [Entry]
    }

    private struct State {
        var mood = Mood.well(0...0)
        var generator: SeededGenerator
    }

    /// What is posted of version 0.1.
    let v01Posts = V01Posts()
    private let events: Events
    private let state: Mutex<State>

    init(seed: UInt64, events: Events) {
        self.events = events
        state = Mutex(State(generator: SeededGenerator(seed: seed)))
    }

    func set(_ mood: Mood) {
        state.withLock { $0.mood = mood }
    }

    /// Serves until it is cancelled.
    ///
    /// - Parameter port: 0 for any that is free.
    func run(port: Int = 0, bound: @escaping @Sendable (Int) -> Void) async throws {
        let quiet = Logger(label: "gorush") { _ in SwiftLogNoOpLogHandler() }
        let router = Router()
        router.post(":daemon/api/push") { request, context in
            try await self.answer(request, from: try context.parameters.require("daemon", as: Int.self))
        }
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: port), backlog: 1024),
            onServerRunning: { channel in bound(channel.localAddress?.port ?? port) }, logger: quiet)
        try await application.runUntilCancelled(logger: quiet)
    }

    private func answer(_ request: Request, from daemon: Int) async throws -> Response {
        let body = try await request.body.collect(upTo: 8 << 20)
        let delay: Int? = state.withLock { state in
            guard case .well(let delays) = state.mood else { return nil }
            return Int.random(in: delays, using: &state.generator)
        }
        guard let delay else { return Response(status: .serviceUnavailable) }
        guard let taken = parse(Data(body.readableBytesView)) else {
            events.unreadable(String(buffer: body))
            return Response(status: .badRequest)
        }
        events.posted(taken, daemon)
        if delay > 0 { try await Task.sleep(for: .milliseconds(delay)) }
        events.replied(taken, daemon)
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: .init(byteBuffer: ByteBuffer(string: #"{"success":"ok","counts":\#(taken.count),"logs":[]}"#)))
    }

    private func parse(_ body: Data) -> [Taken]? {
        guard let posted = try? JSONDecoder().decode(Body.self, from: body) else { return nil }
        var taken: [Taken] = []
        for entry in posted.notifications {
            guard let message = entry.data.encryptedMessage else {
                guard let bytes = bytes(hex: entry.data.message.dropFirst(2)) else { return nil }
                v01Posts.note(bytes, entry.tokens)
                continue
            }
            guard let bytes = bytes(hex: message.dropFirst(2)), let delivery = DeliveryID(bytes: bytes),
                entry.tokens.count == 1
            else { return nil }
            taken.append(Taken(delivery: delivery, token: entry.tokens[0]))
        }
        return taken
    }
}
