import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1

@testable import HTTPService

/// Requests to the node's listeners.
extension Decoder {
    static var http: [Decoder] { [keepAlive, hosts] }

    /// Answers each complete request, as a responder does.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = HTTPRequestPart
        typealias OutboundOut = HTTPResponsePart
        private let hosts = HostPolicy(names: ["push.example"])
        private var isPermitted = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): isPermitted = hosts.permits(head.authority)
            case .body: break
            case .end:
                let status = isPermitted ? HTTPResponse.Status.ok : .misdirectedRequest
                context.write(wrapOutboundOut(.head(HTTPResponse(status: status, headerFields: [.contentLength: "1"]))), promise: nil)
                context.write(wrapOutboundOut(.body(ByteBuffer(string: "a"))), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// A connection with several requests, in pieces and with time between them: the handlers of ``HTTPListener``.
    private static var keepAlive: Decoder {
        let request = Array("POST /subscribe?a=b HTTP/1.1\r\nHost: push.example:1\r\nContent-Length: 3\r\n\r\n".utf8)
        let chunked = Array("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\n".utf8)
        let seed = Steps.encode([
            (0, request), (0, Array("abc".utf8)), (1, [5]), (0, chunked),
            (0, Array("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".utf8)),
        ])
        return reading("connections of HTTP", [seed]) { bytes in
            let channel = EmbeddedChannel()
            defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
            var limits = NIOHTTPDecoderLimitConfiguration()
            (limits.maxHeaderFieldSize, limits.maxHeaderListSize) = (32 << 10, 32 << 10)
            try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
                withEncoderConfiguration: .init(), withDecoderLimitConfiguration: limits)
            try channel.pipeline.syncOperations.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            try channel.pipeline.syncOperations.addHandler(
                ConnectionHandler(limits: HTTPLimits(connections: 2), register: ConnectionRegister(limit: 2)))
            try channel.pipeline.syncOperations.addHandler(Answering())
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            for step in Steps(bytes) where channel.isActive {
                if step.kind & 1 == 0 {
                    try channel.writeInbound(ByteBuffer(bytes: step.bytes))
                } else {
                    channel.embeddedEventLoop.advanceTime(by: .seconds(Int64(step.bytes.first ?? 0)))
                }
                while try channel.readOutbound(as: IOData.self) != nil {}
            }
        }
    }

    private static var hosts: Decoder {
        let policy = HostPolicy(names: ["push.example"])
        return Decoder(name: "names of hosts", seeds: ["push.example:80", "[::1]:1", "localhost."].map { Array($0.utf8) }) { bytes in
            policy.permits(String(decoding: bytes, as: UTF8.self)) ? .taken : .refused
        }
    }
}
