import Foundation
public import NIOCore
import NIOPosix

/// Looks up TXT records over UDP, each query from its own port and with its own id. Forged responses are harmless: node lists are signed.
public struct DNSClient: Sendable {
    /// The servers, with ports, in the order in which they are queried.
    public var servers: [SocketAddress]
    /// Timeout of one query to one server. Each server is queried at most twice.
    public var timeout = TimeAmount.seconds(3)
    /// Where ``servers`` come from, if they are the system's.
    private var file: String?

    /// - Parameter servers: The servers, with ports. Without any, no name is found.
    public init(servers: [SocketAddress]) {
        self.servers = servers
    }

    /// A client of one server; nil unless the text is an IP address.
    public init?(ipAddress: String, port: Int) {
        guard let server = try? SocketAddress(ipAddress: ipAddress, port: port) else { return nil }
        self.init(servers: [server])
    }

    /// A client of the first three servers in `/etc/resolv.conf`, which is read now; of none when there is no such file. A relay reads it again
    /// for each reading of its node lists.
    public static func system() -> DNSClient { system(file: "/etc/resolv.conf") }

    static func system(file: String) -> DNSClient {
        let text = FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) } ?? ""
        var client = DNSClient(servers: servers(in: text))
        client.file = file
        return client
    }

    /// This client, of the servers that the system has now.
    func updated() -> DNSClient {
        guard let file else { return self }
        var client = Self.system(file: file)
        client.timeout = timeout
        return client
    }

    static func servers(in configuration: String) -> [SocketAddress] {
        let named = configuration.split(whereSeparator: \.isNewline).compactMap { line -> SocketAddress? in
            let words = line.split(whereSeparator: \.isWhitespace)
            guard words.count >= 2, words[0] == "nameserver" else { return nil }
            return try? SocketAddress(ipAddress: String(words[1]), port: 53)
        }
        return Array(named.prefix(3))
    }

    /// The TXT records of a name, the parts of each concatenated. Empty when there are none, or no server responds: errors are not reported.
    public func texts(of name: String) async -> [String] {
        (try? await lookUp(name)) ?? []
    }

    /// Why no server has answered.
    enum Failure: Error, Hashable {
        /// There are no servers, or the look-up was cancelled.
        case noServer
        case timedOut
        /// Nothing listens there, or the network is not reachable.
        case unreachable
        case truncated
        /// The response code is one of errors.
        case refused(code: UInt8)
        case malformed
    }

    /// The same, but throws if no server answers. A name that does not exist has no records.
    func lookUp(_ name: String) async throws(Failure) -> [String] {
        var failure = Failure.noServer
        for _ in 0..<2 {
            for server in servers where !Task.isCancelled {
                do {
                    return try await query(server, name)
                } catch DNSMessage.Failure.refused(code: 3) {
                    return []
                } catch {
                    failure = Failure(error)
                }
            }
        }
        throw failure
    }

    private func query(_ server: SocketAddress, _ name: String) async throws -> [String] {
        let id = UInt16.random(in: .min ... .max)
        guard let question = DNSMessage.question(for: name, id: id) else { throw DNSMessage.Failure.malformed }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let answer = loop.makePromise(of: [String].self)
        let channel: any Channel
        do {
            // Connected, so that only datagrams of this server are received.
            channel = try await DatagramBootstrap(group: loop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Receiver(name: name, id: id, answer: answer))
                    }
                }
                .channelOption(ChannelOptions.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: DNSMessage.maximumByteCount))
                .connect(to: server).get()
        } catch {
            answer.fail(error)
            throw error
        }
        let timer = loop.scheduleTask(in: timeout) { answer.fail(ChannelError.connectTimeout(timeout)) }
        defer {
            timer.cancel()
            channel.close(promise: nil)
        }
        channel.writeAndFlush(AddressedEnvelope(remoteAddress: server, data: ByteBuffer(bytes: question)), promise: nil)
        return try await withTaskCancellationHandler {
            try await answer.futureResult.get()
        } onCancel: {
            answer.fail(CancellationError())
        }
    }

    private final class Receiver: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>

        private let name: String
        private let id: UInt16
        private let answer: EventLoopPromise<[String]>

        init(name: String, id: UInt16, answer: EventLoopPromise<[String]>) {
            (self.name, self.id, self.answer) = (name, id, answer)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            do throws(DNSMessage.Failure) {
                answer.succeed(try DNSMessage.texts(in: Array(unwrapInboundIn(data).data.readableBytesView), to: name, id: id))
            } catch {
                // It may be forged: wait for the right one.
                if error != .unrelated { answer.fail(error) }
            }
        }

        /// The port is closed.
        func errorCaught(context: ChannelHandlerContext, error: any Error) { answer.fail(error) }
        func channelInactive(context: ChannelHandlerContext) { answer.fail(ChannelError.eof) }
    }
}

extension DNSClient.Failure {
    fileprivate init(_ error: any Error) {
        switch error {
        case DNSMessage.Failure.truncated: self = .truncated
        case DNSMessage.Failure.refused(let code): self = .refused(code: code)
        case is DNSMessage.Failure: self = .malformed
        case ChannelError.connectTimeout: self = .timedOut
        default: self = .unreachable
        }
    }
}
