import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import HTTPService

/// Handlers of connections and of the listening channel, on a manual clock.
@Suite struct ConnectionHandlerTests {
    private let limits = HTTPLimits(connections: 2)
    private let register = ConnectionRegister(limit: 2)

    private func connect(_ loop: EmbeddedEventLoop) throws -> EmbeddedChannel {
        let channel = EmbeddedChannel(handler: ConnectionHandler(limits: limits, register: register), loop: loop)
        try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
        return channel
    }

    private static let head = HTTPRequestPart.head(HTTPRequest(method: .get, scheme: "http", authority: "localhost", path: "/"))

    private func answer(_ channel: EmbeddedChannel) throws {
        try channel.writeOutbound(HTTPResponsePart.head(HTTPResponse(status: .ok)))
        try channel.writeOutbound(HTTPResponsePart.end(nil))
    }

    /// NIO keeps four buffers of the size of a read for each connection.
    @Test func readsAreSmall() throws {
        let channel = try connect(EmbeddedEventLoop())
        let allocator = channel.options.lazy.compactMap { $0.1 as? AdaptiveRecvByteBufferAllocator }.first
        #expect(allocator?.maximum == 4096)
    }

    @Test func aClientThatSendsNothingIsClosed() throws {
        let loop = EmbeddedEventLoop()
        let channel = try connect(loop)
        loop.advanceTime(by: .seconds(10) - .nanoseconds(1))
        #expect(channel.isActive)
        loop.advanceTime(by: .nanoseconds(1))
        #expect(!channel.isActive)
    }

    /// Even if bytes keep arriving.
    @Test func aSlowBodyIsClosed() throws {
        let loop = EmbeddedEventLoop()
        let channel = try connect(loop)
        loop.advanceTime(by: .seconds(5))
        try channel.writeInbound(Self.head)
        for _ in 0..<29 {
            loop.advanceTime(by: .seconds(1))
            try channel.writeInbound(HTTPRequestPart.body(ByteBuffer(string: "x")))
        }
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    @Test func anIdleConnectionIsClosedAndAnActiveOneStays() throws {
        let loop = EmbeddedEventLoop()
        let channel = try connect(loop)
        for _ in 0..<5 {
            try channel.writeInbound(Self.head)
            try channel.writeInbound(HTTPRequestPart.end(nil))
            // The server's own response time has no limit.
            loop.advanceTime(by: .hours(1))
            try answer(channel)
            loop.advanceTime(by: .seconds(59))
        }
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    /// The response is written, but the client does not read it.
    @Test func aConnectionWithAnUnreadResponseIsClosed() throws {
        let loop = EmbeddedEventLoop()
        let channel = try connect(loop)
        try channel.writeInbound(Self.head)
        try channel.writeInbound(HTTPRequestPart.end(nil))
        channel.write(HTTPResponsePart.head(HTTPResponse(status: .ok)), promise: nil)
        channel.write(HTTPResponsePart.end(nil), promise: nil)
        loop.advanceTime(by: .seconds(59))
        #expect(channel.isActive)
        loop.advanceTime(by: .seconds(1))
        #expect(!channel.isActive)
    }

    /// A body that is not complete would hold a stop up for 30 s, an unread response for 60 s.
    @Test(arguments: [false, true]) func aStopWaitsTwoSecondsForRequests(isAnswered: Bool) throws {
        let loop = EmbeddedEventLoop()
        let channel = try connect(loop)
        try channel.writeInbound(Self.head)
        if isAnswered {
            try channel.writeInbound(HTTPRequestPart.end(nil))
            channel.write(HTTPResponsePart.head(HTTPResponse(status: .ok)), promise: nil)
        }
        loop.advanceTime(by: .seconds(5))
        channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        loop.advanceTime(by: .seconds(2) - .nanoseconds(1))
        #expect(channel.isActive)
        loop.advanceTime(by: .nanoseconds(1))
        #expect(!channel.isActive)
    }

    @Test func aConnectionOverTheLimitEvictsTheLongestIdleOne() throws {
        let loop = EmbeddedEventLoop()
        let first = try connect(loop)
        loop.advanceTime(by: .seconds(1))
        let second = try connect(loop)
        loop.advanceTime(by: .seconds(1))
        try first.writeInbound(Self.head)
        let third = try connect(loop)
        loop.run()
        #expect(first.isActive && !second.isActive && third.isActive)
    }

    @Test func anUploadIsNotTheLongestIdleConnection() throws {
        let loop = EmbeddedEventLoop()
        let upload = try connect(loop)
        try upload.writeInbound(Self.head)
        loop.advanceTime(by: .seconds(1))
        let idle = try connect(loop)
        loop.advanceTime(by: .seconds(1))
        try upload.writeInbound(HTTPRequestPart.body(ByteBuffer(string: "x")))
        let third = try connect(loop)
        loop.run()
        #expect(upload.isActive && !idle.isActive && third.isActive)
    }
}
