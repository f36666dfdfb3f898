import Core

/// Which push service loses a delivery when their queues are full: the one with the longest queue at the address with most deliveries.
///
/// So the many names that one server may have share the room of one, and do not shorten the long queue of a service at another address. Services that
/// have not answered yet, so that their address is unknown, share the room of one too.
struct OriginRoom {
    /// The services at one address.
    private struct Server {
        var count = 0
        /// By the length of their queues, longest first.
        var queues = IndexedHeap<WebPushOrigin, Int>()
    }

    /// Those with deliveries, by address; nil for the services whose address is unknown.
    private var servers: [IPAddress?: Server] = [:]
    /// Servers by their number of deliveries, largest first.
    private var largest = IndexedHeap<IPAddress?, Int>()

    /// The service that loses a delivery.
    var loser: WebPushOrigin? { largest.first.flatMap { servers[$0.id]?.queues.first?.id } }

    var serverCount: Int { servers.count }

    /// Records the number of deliveries of a service that may be evicted.
    mutating func changed(_ service: WebPushOrigin, at address: IPAddress?, from former: Int, to count: Int) {
        guard count != former else { return }
        var server = servers.removeValue(forKey: address) ?? Server()
        server.count += count - former
        server.queues.remove(service)
        if count > 0 { server.queues.insert(service, key: -count) }
        largest.remove(address)
        guard server.count > 0 else { return }
        largest.insert(address, key: -server.count)
        servers[address] = server
    }
}
