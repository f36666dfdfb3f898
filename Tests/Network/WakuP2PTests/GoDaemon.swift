import LibP2P
import NIOCore
import NIOPosix
import Core
import Synchronization
import TestSupport
import Testing

/// `p2pd` as a process, subscribed to a topic. It is controlled over a socket, go-libp2p-daemon, specs/CONTROL.md and specs/PUBSUB.md:
///
///     Request  { 1 type: 1 connect, 8 pubsub · 2 { 1 peer · 2 address* } · 8 { 1 type: 2 publish, 3 subscribe · 2 topic · 3 data } }
///     Response { 1 type: 0 ok }, and after a subscription messages { 1 from · 2 data · 3 sequence number · 4 topic* }
final class GoDaemon: Sendable {
    let address: Multiaddr
    private let daemon: GoLibP2PDaemon
    private let messages = Log<[UInt8]>()
    private let subscription: any Channel

    init(subscribingTo topic: String) async throws {
        daemon = try await GoLibP2PDaemon(["-pubsub", "-pubsubSign=false", "-pubsubSignStrict=false", "-dht=false"])
        address = try Multiaddr(daemon.address)
        let answers = Answers(messages)
        subscription = try await Self.open(daemon.controlPath, answers)
        try await subscription.writeAndFlush(Self.pubsub(3, topic, nil))
        try await eventually { answers.isOK }
    }

    deinit {
        subscription.close(promise: nil)
    }

    /// The data of the messages received.
    var received: [[UInt8]] { messages.all }

    func publish(_ data: [UInt8], on topic: String) async throws { try await ask(Self.pubsub(2, topic, data)) }

    func connect(to address: Multiaddr) async throws {
        var target = ProtobufWriter()
        target.field(1, try #require(address.peerID).bytes)
        target.field(2, address.withoutPeerID.encoded())
        var request = ProtobufWriter()
        request.field(1, 1 as UInt64)
        request.field(2, target.bytes)
        try await ask(PeerStream.delimited(ByteBuffer(bytes: request.bytes)))
    }

    private func ask(_ request: ByteBuffer) async throws {
        let answers = Answers(messages)
        let channel = try await Self.open(daemon.controlPath, answers)
        try await channel.writeAndFlush(request)
        try await eventually { answers.isOK }
        try await channel.close()
    }

    private static func pubsub(_ type: UInt64, _ topic: String, _ data: [UInt8]?) -> ByteBuffer {
        var pubsub = ProtobufWriter()
        pubsub.field(1, type)
        pubsub.field(2, topic)
        if let data { pubsub.field(3, data) }
        var request = ProtobufWriter()
        request.field(1, 8 as UInt64)
        request.field(8, pubsub.bytes)
        return PeerStream.delimited(ByteBuffer(bytes: request.bytes))
    }

    private static func open(_ path: String, _ answers: Answers) async throws -> any Channel {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in channel.pipeline.addHandler(answers) }
            .connect(unixDomainSocketPath: path).get()
    }

    /// The first frame is a response, later ones are messages.
    private final class Answers: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let state = Mutex((framing: FrameSplitter(limit: 1 << 20), isOK: false))
        private let messages: Log<[UInt8]>
        var isOK: Bool { state.withLock { $0.isOK } }

        init(_ messages: Log<[UInt8]>) { self.messages = messages }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let bytes = Array(unwrapInboundIn(data).readableBytesView)
            let found = state.withLock { state -> [[UInt8]] in
                state.framing.append(bytes)
                var found: [[UInt8]] = []
                while let frame = try? state.framing.next() {
                    if state.isOK {
                        found.append(Array(frame))
                    } else {
                        // After a refusal nothing more is read.
                        guard frame.starts(with: [8, 0]) else { break }
                        state.isOK = true
                    }
                }
                return found
            }
            for frame in found {
                var reader = ProtobufReader(frame)
                while let field = try? reader.next() {
                    if field.number == 2, let range = try? field.content() { messages.add([Array(frame[range])]) }
                }
            }
        }
    }
}
