import Foundation
import HTTPService
import Hummingbird
import Logging
import NIOCore
import Core
import Synchronization
import TestSupport
import WakuCrypto

/// Accepts the daemons' posts to `/api/push`, as gorush does. Outlives the daemons.
///
/// Each notification's message is its ``DeliveryID``, and each daemon's URL contains its number, so that the sender of a post is known.
final class GorushStandIn: Sendable {
    /// Its present behaviour.
    enum Mood: Sendable {
        /// Accepts everything, and replies after this many milliseconds.
        case well(ClosedRange<Int>)
        /// Rejects everything with 503.
        case failing
    }

    struct Taken: Sendable {
        let delivery: DeliveryID
        let token: String
        /// A repetition replaces the first on the device.
        let showsOnce: Bool
    }

    struct Events: Sendable {
        /// Called when notifications were posted that will be accepted.
        let posted: @Sendable ([Taken], _ daemon: Int) -> Void
        /// Called just before the reply is sent.
        let replied: @Sendable ([Taken], _ daemon: Int) -> Void
        /// Called for a body that can't be parsed.
        let unreadable: @Sendable (String) -> Void
    }

    private struct Body: Decodable {
        struct Entry: Decodable {
            struct Content: Decodable {
                /// Deployed protocol only.
                let encryptedMessage: String?
                /// nil in Session's notifications.
                let message: String?
                /// Session only.
                let sealed: String?

                enum CodingKeys: String, CodingKey {
                    case encryptedMessage, message
                    case sealed = "enc_payload"
                }
            }
            let tokens: [String]
            let collapseID: String?
            let data: Content?
            /// JSON of a ``Content``, for Huawei's devices.
            let huaweiData: String?

            var content: Content? {
                data ?? huaweiData.flatMap { try? JSONDecoder().decode(Content.self, from: Data($0.utf8)) }
            }

            enum CodingKeys: String, CodingKey {
                case tokens, data
                case collapseID = "collapse_id"
                case huaweiData = "huawei_data"
            }
        }
        let notifications: [Entry]
    }

    /// The contents of a post.
    private struct Parsed {
        var taken: [Taken] = []
        var session: [SessionPost] = []
        /// The number of tokens.
        var count = 0
    }

    private struct State {
        var mood = Mood.well(0...0)
        var session: SessionPosts?
        var generator: SeededGenerator
    }

    /// Posts of version 0.1.
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

    func observeSession(_ session: SessionPosts) {
        state.withLock { $0.session = session }
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
        let (delay, session) = state.withLock { state -> (Int?, SessionPosts?) in
            guard case .well(let delays) = state.mood else { return (nil, nil) }
            return (Int.random(in: delays, using: &state.generator), state.session)
        }
        guard let delay else { return Response(status: .serviceUnavailable) }
        guard let parsed = parse(Data(body.readableBytesView)), session != nil || parsed.session.isEmpty else {
            events.unreadable(String(buffer: body))
            return Response(status: .badRequest)
        }
        events.posted(parsed.taken, daemon)
        let notices = session?.posted(parsed.session, daemon) ?? []
        if delay > 0 { try await Task.sleep(for: .milliseconds(delay)) }
        events.replied(parsed.taken, daemon)
        session?.replied(notices, daemon)
        return Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: .init(byteBuffer: ByteBuffer(string: #"{"success":"ok","counts":\#(parsed.count),"logs":[]}"#)))
    }

    private func parse(_ body: Data) -> Parsed? {
        guard let posted = try? JSONDecoder().decode(Body.self, from: body) else { return nil }
        var parsed = Parsed()
        for entry in posted.notifications {
            guard let content = entry.content else { return nil }
            if let payload = content.sealed {
                guard entry.tokens.count == 1 else { return nil }
                parsed.session.append(SessionPost(token: entry.tokens[0], payload: payload))
            } else if let message = content.encryptedMessage {
                guard let bytes = bytes(hex: message.dropFirst(2)), let delivery = DeliveryID(bytes: bytes), entry.tokens.count == 1
                else { return nil }
                parsed.taken.append(Taken(delivery: delivery, token: entry.tokens[0], showsOnce: entry.collapseID != nil))
            } else {
                guard let bytes = content.message.flatMap({ bytes(hex: $0.dropFirst(2)) }) else { return nil }
                v01Posts.note(bytes, entry.tokens)
            }
            parsed.count += entry.tokens.count
        }
        return parsed
    }
}
