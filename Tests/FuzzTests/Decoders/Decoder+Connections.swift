import Core
import GossipSub
import NIOCore
import NIOEmbedded
@testable import SessionProtocol
import TestSupport
import Waku
import WakuCrypto

@testable import LibP2P

/// Connections, each driven by a sequence of ``Steps``.
extension Decoder {
    static var connections: [Decoder] { [upgrades, libp2p, streams, zmtp, curve, oxenMQ] }

    private struct Refused: Error {}

    // MARK: libp2p

    /// A stream with negotiation and data.
    private static func opening(_ id: UInt32, _ protocolID: String, _ data: [UInt8]) -> [UInt8] {
        let lines =
            Array(buffer: MultistreamNegotiation.line("/multistream/1.0.0")) + Array(buffer: MultistreamNegotiation.line(protocolID))
        return frame(1, 1, id, 0) + frame(0, 0, id, UInt32(lines.count + data.count)) + lines + data
    }

    private static func frame(_ type: UInt8, _ flags: UInt16, _ id: UInt32, _ length: UInt32) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeMultipleIntegers(UInt8(0), type, flags, id, length)
        return Array(buffer: buffer)
    }

    private final class Owner: ConnectionOwner {
        let traffic = Traffic()
        let memory = MemoryBudget(limit: 1 << 20)
        func opened(_ connection: Connection) -> ConnectionError? { nil }
        func closed(_ connection: Connection?, _ reason: any Error) {}
        func relieveMemory() {}
        func isServed(_ protocolID: String) -> Bool { protocolID == "/a" }
        func start(_ stream: PeerStream) -> Task<Void, Never>? { stream.id % 8 == 7 ? nil : Task {} }
    }

    private static let served = NodeKey((try? PrivateKey(bytes: [UInt8](repeating: 7, count: 32))) ?? .generate())
    private static let servedIdentity = NoiseIdentity(served)
    private static let caller = NoiseIdentity(NodeKey.generate(.ed25519))

    /// Both sides of an upgrade, and steps that alter the bytes between them. The lowest bit of a kind is the side that sent the bytes: 0 for the
    /// initiator. The next two are:
    ///
    ///     0  passes as many of them on as the first byte says, all if it is 0
    ///     1  changes the byte at an offset by the bits of another one
    ///     2  replaces them
    ///     3  appends bytes
    ///
    /// After the steps, everything is passed on.
    private static var upgrades: Decoder {
        let seeds: [[(kind: UInt8, bytes: [UInt8])]] = [[(0, [])], [(0, [3]), (1, [1]), (0, []), (1, [30])]]
        return reading("upgrades", seeds.map(Steps.encode)) { bytes in
            var sides = [
                ConnectionUpgrade(.initiator, identity: caller, expecting: served.peerID),
                ConnectionUpgrade(.responder, identity: servedIdentity, expecting: nil),
            ]
            // The bytes that each side sent, and those that it received and has not consumed.
            var (sent, received) = (sides.map(\.opening), [ByteBuffer(), ByteBuffer()])
            var peers: [PeerID?] = [nil, nil]
            func pass(_ limit: Int, from side: Int) throws {
                let other = 1 - side
                guard var part = sent[side].readSlice(length: min(limit, sent[side].readableBytes)), peers[other] == nil else { return }
                received[other].writeBuffer(&part)
                peers[other] = try sides[other].receive(&received[other], output: &sent[other])?.peer
            }
            for step in Steps(bytes) {
                let (side, first) = (Int(step.kind & 1), Int(step.bytes.first ?? 0))
                switch step.kind >> 1 & 3 {
                case 0: try pass(first == 0 ? .max : first, from: side)
                case 1:
                    let index = sent[side].readerIndex + first
                    guard step.bytes.count > 1, let byte = sent[side].getInteger(at: index, as: UInt8.self) else { continue }
                    sent[side].setInteger(byte ^ step.bytes[1], at: index)
                case 2: sent[side] = ByteBuffer(bytes: step.bytes)
                default: sent[side].writeBytes(step.bytes)
                }
            }
            while sent.contains(where: { $0.readableBytes > 0 }) {
                for side in 0...1 { try pass(.max, from: side) }
            }
            let expected = [served.peerID, caller.peerID]
            for (peer, expected) in zip(peers, expected) { precondition(peer == nil || peer == expected, "upgraded to another peer") }
            guard peers == expected else { throw Refused() }
        }
    }

    /// The handler of a connection: after the handshake the steps are bytes of yamux, which are encrypted here, bytes as they are, and seconds.
    private static var libp2p: Decoder {
        let seed = Steps.encode([
            (0, opening(1, "/a", [1, 2, 3])), (0, frame(2, 1, 0, 5)), (6, [9]), (0, frame(0, 4, 1, 0)), (0, frame(3, 0, 0, 0)),
        ])
        return reading("connections of libp2p", [seed, Steps.encode([(0, opening(3, "/b", [])), (5, [0, 1, 2])])]) { bytes in
            let channel = EmbeddedChannel()
            defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
            let opened = channel.eventLoop.makePromise(of: Connection.self)
            try channel.pipeline.syncOperations.addHandler(
                ConnectionHandler(
                    .responder, identity: servedIdentity, expecting: nil, remoteAddress: nil, configuration: .init(), owner: Owner(),
                    opened: opened))
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            func received() throws -> ByteBuffer {
                var all = ByteBuffer()
                while let bytes = try channel.readOutbound(as: ByteBuffer.self) { all.writeImmutableBuffer(bytes) }
                return all
            }
            var upgrade = ConnectionUpgrade(.initiator, identity: caller, expecting: served.peerID)
            var (output, input) = (upgrade.opening, ByteBuffer())
            var upgraded: ConnectionUpgrade.Upgraded?
            while upgraded == nil {
                try channel.writeInbound(output)
                output = ByteBuffer()
                input.writeImmutableBuffer(try received())
                upgraded = try upgrade.receive(&input, output: &output)
            }
            guard var transport = upgraded?.transport else { return }
            for step in Steps(bytes) where channel.isActive {
                var plain = ByteBuffer(bytes: step.bytes)
                switch step.kind & 7 {
                case 6: channel.embeddedEventLoop.advanceTime(by: .seconds(Int64(step.bytes.first ?? 0)))
                case 5: try channel.writeInbound(plain)
                default: try channel.writeInbound(transport.seal(&plain))
                }
                // Everything that it sends must decrypt.
                var sealed = try received()
                _ = try transport.open(&sealed)
            }
        }
    }

    /// Bytes of yamux that carry gossip, through the state machines of streams, negotiation, frames and gossip, with answers.
    private static var streams: Decoder {
        let topic = PubsubTopic.statusDefault.rawValue
        var queue = OutboundQueue()
        let message = GossipMessage(topic: topic, data: [1, 2, 3])
        for item in [
            Outgoing.subscription(topic: topic, isOn: true), .graft(topic: topic), .message(message),
            .ihave(topic: topic, ids: [message.id]),
        ] {
            _ = queue.append(item)
        }
        let frame = queue.nextFrame() ?? []
        let seed = Steps.encode([(0, opening(1, "/meshsub/1.2.0", frame)), (1, []), (0, Self.frame(0, 4, 1, 0))])
        return reading("streams of gossip", [seed]) { bytes in
            var session = YamuxSession(.responder)
            var gossip = GossipSubRouter(configuration: smallGossip, seed: 1)
            var streams: [UInt32: (negotiation: MultistreamNegotiation?, input: ByteBuffer, frames: FrameSplitter)] = [:]
            var input = ByteBuffer()
            var now = Instant.zero
            let peer = PeerNumber(rawValue: 1)
            gossip.subscribe(to: topic, at: now)
            gossip.connected(peer, version: .v12, isOutbound: false)
            for step in Steps(bytes) {
                now = now + .milliseconds(step.kind & 1 == 0 ? 1 : 1000 * Int(step.kind))
                input.writeBytes(step.bytes)
                var events: [YamuxSession.Event] = []
                try session.receive(&input, &events)
                for event in events {
                    switch event {
                    case .opened(let id): streams[id] = (.responder(), ByteBuffer(), FrameSplitter(limit: GossipRPC.maximumByteCount))
                    case .data(let id, let data):
                        session.consumed(data.readableBytes, on: id)
                        guard var stream = streams[id] else { continue }
                        stream.input.writeImmutableBuffer(data)
                        if var negotiation = stream.negotiation {
                            var answers = ByteBuffer()
                            let agreed = try negotiation.receive(&stream.input, output: &answers) { $0.hasPrefix("/meshsub/") }
                            _ = session.send(&answers, on: id)
                            stream.negotiation = agreed == nil ? negotiation : nil
                        }
                        if stream.negotiation == nil {
                            stream.frames.append(Array(buffer: stream.input))
                            stream.input.clear()
                            while let frame = try stream.frames.next() {
                                gossip.received(try GossipRPC(parsing: frame), from: peer, at: now)
                            }
                        }
                        streams[id] = stream
                    case .finished(let id), .reset(let id):
                        streams[id] = nil
                        session.finish(id)
                    case .windowGrew: break
                    case .goAway: return
                    }
                }
                if step.kind & 1 == 1 { gossip.heartbeat(at: now) }
                for case .validate(let message, _) in gossip.takeActions() {
                    gossip.judged(message.id, as: step.kind & 2 == 0 ? .accept : .reject, at: now)
                }
                session.output.clear()
            }
            gossip.disconnected(peer, at: now)
        }
    }

    // MARK: oxenmq

    /// The bytes of a server without CURVE, which arrive at once, and one by one: events, answers and the end are the same.
    private static var zmtp: Decoder {
        func frame(_ flags: UInt8, _ body: [UInt8]) -> [UInt8] { [flags, UInt8(body.count)] + body }
        let greeting = [0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 1] + Array("NULL".utf8) + [UInt8](repeating: 0, count: 48)
        let ready = [5] + Array("READY".utf8) + [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6] + Array("ROUTER".utf8)
        let seed =
            greeting + frame(4, ready) + frame(0, Array("HELLO".utf8)) + frame(1, Array("REPLY".utf8)) + frame(1, [1])
            + [2, 0, 0, 0, 0, 0, 0, 0, 2, 8, 9] + frame(4, [4] + Array("PING".utf8) + [0, 9, 7, 7]) + frame(4, [4] + Array("PONG".utf8))
        return reading("connections of ZMTP", [seed]) { bytes in
            let runs = [[bytes[...]], bytes.indices.map { bytes[$0...$0] }].map { chunks in
                var connection = ZMTPConnection(curve: nil, maximumPartByteCount: 200)
                var (events, end) = ([ZMTPConnection.Event](), OxenMQClient.Reason?.none)
                for chunk in chunks where end == nil {
                    connection.receive(ByteBuffer(bytes: chunk))
                    do throws(OxenMQClient.Reason) {
                        while let event = try connection.next() { events.append(event) }
                        precondition(connection.heldByteCount <= (OxenMQSession.maximumPartCount + 1) * 200 + 4096)
                    } catch {
                        end = error
                    }
                }
                return (events, end, connection.takeOutbound())
            }
            precondition(runs[0] == runs[1])
            guard runs[0].1 == nil, runs[0].0.contains(.opened) else { throw Refused() }
        }
    }

    /// A client of CURVE, and a server that makes mistakes in its boxes. The lowest two bits of a step's kind:
    ///
    ///     0  the next command of the handshake as it should be; once it is over, the bytes as the plain text of a MESSAGE
    ///     1  the bytes, as they are
    ///     2  the same command with the bytes in its box, or a MESSAGE with the number of the last one
    ///     3  a frame of the bytes
    ///
    /// The messages in boxes of kind 0 are known, as long as there is no other kind.
    private static var curve: Decoder {
        let seeds: [[(kind: UInt8, bytes: [UInt8])]] = [
            [(0, []), (0, []), (0, []), (0, [0, 9]), (0, [1, 7]), (0, [2, 4] + Array("PING".utf8) + [0, 9, 7]), (0, [0, 8])],
            [(0, []), (0, []), (2, [11] + Array("Socket-Type".utf8) + [0, 0, 0, 3] + Array("REP".utf8)), (0, [0])],
        ]
        return reading("connections of CURVE", seeds.map(Steps.encode)) { bytes in
            let sodium = try Sodium.load()
            let (key, connectionKey) = (CurveKey(sodium: sodium), CurveKey(sodium: sodium))
            let handshake = try CurveHandshake(sodium: sodium, serverKey: key.publicKey, key: CurveKey(sodium: sodium))
            var connection = ZMTPConnection(curve: handshake, maximumPartByteCount: 200)
            var (isKnown, expected, parts) = (true, [ZMTPConnection.Event](), [[UInt8]]())
            var (events, step, number) = ([ZMTPConnection.Event](), 0, UInt64(0))
            var boxKey: SymmetricKey?

            func frame(_ body: [UInt8]) -> [UInt8] {
                [body.count > 255 ? 6 : 4] + (body.count > 255 ? CurveSession.nonceBytes(UInt64(body.count)) : [UInt8(body.count)]) + body
            }
            func sealed(_ name: String, _ plain: [UInt8], _ prefix: String) -> [UInt8] {
                guard let boxKey else { return [] }
                let nonce = CurveSession.nonceBytes(number)
                let box = sodium.boxSeal(plain, key: boxKey, nonce: Array(prefix.utf8) + nonce)
                return [UInt8(name.utf8.count)] + Array(name.utf8) + nonce + box
            }
            /// - Parameter plain: the content of the command's box; nil for the right one.
            func answer(_ plain: [UInt8]?) throws -> [UInt8] {
                let sent = connection.takeOutbound().map { Array(buffer: $0) } ?? []
                defer { step += 1 }
                switch step {
                case 0:
                    let greeting = [0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 1] + Array("CURVE".utf8)
                    return greeting + [UInt8](repeating: 0, count: 47)
                case 1:
                    // HELLO ends with C′, a nonce of 8 bytes and a box of 80.
                    let point = Array(sent.suffix(120).prefix(32))
                    boxKey = try sodium.boxKey(connectionKey.secret, with: point)
                    let nonce = [UInt8](repeating: 7, count: 16)
                    let welcome = plain ?? connectionKey.publicKey + [UInt8](repeating: 7, count: 96)
                    let welcomeKey = try sodium.boxKey(key.secret, with: point)
                    let box = sodium.boxSeal(welcome, key: welcomeKey, nonce: Array("WELCOME-".utf8) + nonce)
                    return frame([7] + Array("WELCOME".utf8) + nonce + box)
                case 2:
                    number += 1
                    let metadata = [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6] + Array("ROUTER".utf8)
                    return frame(sealed("READY", plain ?? metadata, "CurveZMQREADY---"))
                default: return []
                }
            }
            for (kind, bytes) in Steps(bytes) {
                let input: [UInt8]
                switch (kind & 3, step) {
                case (0, ..<3):
                    input = try answer(nil)
                    if step == 3 { expected.append(.opened) }
                case (0, _):
                    number += 1
                    input = frame(sealed("MESSAGE", bytes, "CurveZMQMESSAGES"))
                    guard let flags = bytes.first, flags & 2 == 0 else { break }
                    parts.append(Array(bytes.dropFirst()))
                    guard flags & 1 == 0 || parts.count > OxenMQSession.maximumPartCount else { break }
                    expected.append(.message(parts))
                    parts = []
                case (2, ..<3): (input, isKnown) = (try answer(bytes), false)
                case (2, _): (input, isKnown) = (frame(sealed("MESSAGE", bytes, "CurveZMQMESSAGES")), false)
                case (3, _): (input, isKnown) = (frame(bytes), false)
                default: (input, isKnown) = (bytes, false)
                }
                connection.receive(ByteBuffer(bytes: input))
                while let event = try connection.next() { events.append(event) }
                precondition(connection.heldByteCount <= (OxenMQSession.maximumPartCount + 1) * 200 + 4096)
            }
            precondition(!isKnown || events == expected, "another message than the server's")
            guard connection.isOpen else { throw Refused() }
        }
    }

    /// Messages of a storage server: a step is a part, and an odd kind says that another part of its message follows.
    private static var oxenMQ: Decoder {
        func message(_ parts: [[UInt8]]) -> [UInt8] {
            Steps.encode(parts.enumerated().map { (kind: $0.offset < parts.count - 1 ? 1 : 0, bytes: $0.element) })
        }
        let seed =
            message([Array("HELLO".utf8)]) + message([Array("REPLY".utf8), [1], Array("ld7:successi1eed7:errcodei6e5:error1:aee".utf8)])
            + message([Array("notify.message".utf8), SessionVectors.derived.notifyMessageBencodeHex.bytes.prefix(200).map { $0 }])
            + message([Array("FORBIDDEN".utf8), Array("REPLY".utf8), [2]]) + message([Array("BYE".utf8)])
        return Decoder(name: "sessions of oxenmq", seeds: [seed]) { bytes in
            var session = OxenMQSession()
            var hints = SwarmHintReader()
            var parts: [[UInt8]] = []
            for step in Steps(bytes) {
                parts.append(step.bytes)
                // As the socket's owner does: no more than one part over the limit is kept.
                guard step.kind & 1 == 0 || parts.count > OxenMQSession.maximumPartCount else { continue }
                let wasReady = session.isReady
                switch session.receive(parts) {
                case .reply(_, let parts):
                    precondition(wasReady)
                    for part in parts {
                        _ = MonitorOutcome.outcomes(parsing: part, count: 2)
                        _ = try? StorageServerList(parsingOxend: part)
                    }
                case .command(let name, let parts):
                    precondition(wasReady)
                    for part in parts {
                        if name == MonitorEnded.command {
                            _ = try? MonitorEnded(parsing: part, &hints)
                        } else {
                            _ = try? NotifyMessage(parsing: part)
                        }
                    }
                case .hello: precondition(!wasReady && session.isReady)
                case .closed, .refused, .ignored: break
                }
                parts.removeAll()
            }
            return .taken
        }
    }
}
