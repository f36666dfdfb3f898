import Core
import NIOCore
import NIOPosix
import WakuCrypto

/// The connections of an ``OxenMQClient``. Used on the thread of its event loop.
final class OxenMQLoop {
    /// Bytes read from a connection before the next one: at most the maximum. The buffer of a connection with little traffic stays small.
    private static let readBuffer = AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2048, maximum: 64 << 10)
    /// Limit of the bytes that the system receives for a connection that is not read. They are delivered at once when the connection ends.
    private static let receiveBufferByteCount = 256 << 10

    let configuration: OxenMQClient.Configuration
    private let eventLoop: any EventLoop
    private let sodium: Sodium
    let handler: @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    /// CURVE key of this client only.
    private let key: CurveKey
    private var links: [ConnectionNumber: OxenMQLink] = [:]
    /// Held bytes that count towards ``UnreceivedLimits/common``.
    private var commonByteCount = 0
    private var isCheckScheduled = false

    init(
        _ eventLoop: any EventLoop, sodium: Sodium, configuration: OxenMQClient.Configuration,
        handler: @escaping @Sendable (ConnectionNumber, OxenMQClient.Event) -> OxenMQClient.Flow
    ) {
        (self.eventLoop, self.sodium, self.configuration, self.handler) = (eventLoop, sodium, configuration, handler)
        key = CurveKey(sodium: sodium)
    }

    // MARK: Connections

    /// Adds a connection, which waits for the address of its server.
    func add(_ number: ConnectionNumber, serverKey: [UInt8]?) {
        guard links[number] == nil else { return }
        guard links.count < configuration.maximumConnections else {
            _ = handler(number, .closed(.failed("too many connections")))
            return
        }
        do throws(CryptoError) {
            let curve: CurveHandshake? =
                if let serverKey { try CurveHandshake(sodium: sodium, serverKey: serverKey, key: key) } else { nil }
            let connection = ZMTPConnection(curve: curve, maximumPartByteCount: configuration.maximumPartByteCount)
            links[number] = OxenMQLink(number, connection, owner: self)
            scheduleCheck()
        } catch {
            _ = handler(number, .closed(.handshakeFailed))
        }
    }

    /// Connects to the server, unless the connection was closed.
    func open(_ number: ConnectionNumber, _ address: Result<SocketAddress, OxenMQClient.Reason>) {
        guard let link = links[number] else { return }
        guard case .success(let address) = address else {
            if case .failure(let reason) = address { close(number, reason) }
            return
        }
        let bound = NIOLoopBound(link, eventLoop: eventLoop)
        ClientBootstrap(group: eventLoop)
            .connectTimeout(TimeAmount(configuration.handshakeTimeout))
            .channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(Self.receiveBufferByteCount))
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelOption(.recvAllocator, value: Self.readBuffer)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(bound.value) }
            }
            .connect(to: address)
            .assumeIsolated()
            .whenFailure { self.close(number, Self.reason($0)) }
    }

    /// Why a connection could not be made.
    private static func reason(_ error: any Error) -> OxenMQClient.Reason {
        guard let code = (error as? IOError)?.errnoCode else { return .silent }
        return code == ECONNREFUSED ? .refused : .failed(String(cString: strerror(code)))
    }

    func send(_ number: ConnectionNumber, _ parts: [[UInt8]]) {
        links[number]?.send(parts)
    }

    func resume(_ number: ConnectionNumber) {
        links[number]?.resume()
    }

    /// Closes a connection, with an event.
    func close(_ number: ConnectionNumber, _ reason: OxenMQClient.Reason) {
        guard let link = remove(number) else { return }
        link.close(sayingBye: false)
        _ = handler(number, .closed(reason))
    }

    /// Closes a connection, without an event.
    func end(_ number: ConnectionNumber) {
        remove(number)?.close(sayingBye: true)
    }

    /// Closes all connections, without an event.
    func endAll() -> EventLoopFuture<Void> {
        .andAllComplete(links.keys.compactMap { remove($0)?.close(sayingBye: true) }, on: eventLoop)
    }

    private func remove(_ number: ConnectionNumber) -> OxenMQLink? {
        guard let link = links.removeValue(forKey: number) else { return nil }
        commonByteCount -= commonBytes(link.countedByteCount)
        return link
    }

    // MARK: Limits and times

    /// Counts the bytes that a connection holds now, and closes connections that hold too many.
    func countHeldBytes(of link: OxenMQLink) {
        let count = link.heldByteCount
        commonByteCount += commonBytes(count) - commonBytes(link.countedByteCount)
        link.countedByteCount = count
        guard count > configuration.unreceived.each || commonByteCount > configuration.unreceived.common else { return }
        for number in configuration.unreceived.excess(links.mapValues(\.countedByteCount)) { close(number, .endlessMessage) }
    }

    private func commonBytes(_ count: Int) -> Int { max(count - configuration.unreceived.free, 0) }

    private func scheduleCheck() {
        guard !isCheckScheduled, !links.isEmpty else { return }
        isCheckScheduled = true
        eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(configuration.checkInterval)) {
            self.isCheckScheduled = false
            let now = Instant.now
            for link in self.links.values { link.check(at: now) }
            self.scheduleCheck()
        }
    }
}
