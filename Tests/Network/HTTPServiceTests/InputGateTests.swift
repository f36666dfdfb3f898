import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import HTTPService

/// Connections on a manual clock, with the decoder between ``InputGate`` and a handler that counts.
@Suite struct InputGateTests {
    private let loop = EmbeddedEventLoop()
    private let scheduler: InputScheduler

    init() {
        scheduler = InputScheduler(on: loop)
    }

    /// Counts the parts of requests, and passes requests for reads on while it may.
    private final class Reader: ChannelDuplexHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundIn = Never

        var (heads, bodyBytes, bodies) = (0, 0, 0)
        /// The body's parts, as a reader that collects them keeps them.
        var kept: [ByteBuffer] = []
        var isReading = true
        var hasEnded = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head: heads += 1
            case .body(let body):
                bodies += 1
                bodyBytes += body.readableBytes
                kept.append(body)
            case .end: break
            }
        }

        func read(context: ChannelHandlerContext) {
            if isReading { context.read() }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .inputClosed? = event as? ChannelEvent { hasEnded = true }
        }
    }

    private func connect(from address: String) throws -> (EmbeddedChannel, Reader) {
        let channel = EmbeddedChannel(loop: loop)
        try channel.connect(to: SocketAddress(ipAddress: address, port: 1)).wait()
        let pipeline = channel.pipeline.syncOperations
        try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try RequestHeadHandler.add(to: pipeline, scheduler)
        let reader = Reader()
        try pipeline.addHandler(reader)
        return (channel, reader)
    }

    private static let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

    private func send(_ text: String, count: Int = 1, to channel: EmbeddedChannel) throws {
        try channel.writeInbound(ByteBuffer(string: String(repeating: text, count: count)))
    }

    @Test func aRequestIsPassedOnAtOnce() throws {
        let (channel, reader) = try connect(from: "192.0.2.1")
        try send(Self.request, to: channel)
        #expect(reader.heads == 1)
        _ = try? channel.finish()
    }

    @Test func requestsThatAreNotAwaitedDelayNoOtherNetwork() throws {
        let floods = try (1...20).map { try connect(from: "192.0.2.\($0)") }
        for (channel, _) in floods { try send(Self.request, count: 1000, to: channel) }
        let parsed = floods.map(\.1.heads).reduce(0, +)
        #expect(parsed < 100)
        let (channel, reader) = try connect(from: "198.51.100.1")
        try send(Self.request, to: channel)
        #expect(reader.heads == 0)
        loop.advanceTime(by: .milliseconds(20))
        #expect(reader.heads == 1)
        #expect(floods.map(\.1.heads).reduce(0, +) - parsed < 250)
        // Nothing is lost.
        loop.advanceTime(by: .seconds(3))
        #expect(floods.allSatisfy { $0.1.heads == 1000 })
        for (channel, _) in floods { _ = try? channel.finish() }
        _ = try? channel.finish()
    }

    @Test func smallChunksDelayNoOtherNetwork() throws {
        let floods = try (1...20).map { try connect(from: "192.0.2.\($0)") }
        for (channel, _) in floods {
            try send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", to: channel)
            try send("1\r\nx\r\n", count: 5000, to: channel)
        }
        #expect(floods.map(\.1.bodies).reduce(0, +) < 600)
        let (channel, reader) = try connect(from: "198.51.100.1")
        try send(Self.request, to: channel)
        loop.advanceTime(by: .milliseconds(20))
        #expect(reader.heads == 1)
        for (channel, _) in floods { _ = try? channel.finish() }
        _ = try? channel.finish()
    }

    /// When the client ends the connection NIO reads all that has arrived, without a request for it.
    @Test func bytesWaitUntilAReadIsRequested() throws {
        let (channel, reader) = try connect(from: "192.0.2.1")
        reader.isReading = false
        for _ in 0..<10 { try send(Self.request, count: 100, to: channel) }
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        loop.advanceTime(by: .seconds(1))
        #expect(reader.heads < 20 && !reader.hasEnded)
        reader.isReading = true
        channel.read()
        loop.advanceTime(by: .seconds(1))
        #expect(reader.heads == 1000 && reader.hasEnded)
        _ = try? channel.finish()
    }

    @Test func aConnectionThatEndedWithTooManyRequestsIsClosed() throws {
        let (channel, reader) = try connect(from: "192.0.2.1")
        reader.isReading = false
        // The decoder reports the end of a connection within a request.
        for _ in 0..<30 { try? send(Self.request, count: 100, to: channel) }
        loop.run()
        #expect(!channel.isActive && reader.heads < 40)
    }

    @Test func aBodyOfAConnectionThatEndedIsReadWhateverItsSize() throws {
        let (channel, reader) = try connect(from: "192.0.2.1")
        reader.isReading = false
        let count = 10 << 20
        try send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n", to: channel)
        for _ in 0..<count / 4096 { try send("x", count: 4096, to: channel) }
        channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        reader.isReading = true
        channel.read()
        loop.advanceTime(by: .seconds(1))
        #expect(reader.bodyBytes == count && reader.hasEnded && channel.isActive)
        #expect(reader.kept.map(\.storageCapacity).reduce(0, +) <= 2 * count)
        _ = try? channel.finish()
    }
}
