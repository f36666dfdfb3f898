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
        var queues = IndexedHeap<Int>()
    }

    private var servers: [Int64: Server] = [:]
    private var numbers: [IPAddress?: Int64] = [:]
    /// Servers by their number of deliveries, largest first.
    private var largest = IndexedHeap<Int>()
    private var lastNumber: Int64 = 0

    /// The service that loses a delivery, by its index in ``DeliveryTable/endpoints``.
    var loser: Int? {
        largest.first.flatMap { servers[$0.id]?.queues.first }.map { Int($0.id) }
    }

    var serverCount: Int { servers.count }

    /// Records the number of deliveries of a service that may be evicted.
    mutating func changed(_ service: Int, at address: IPAddress?, from former: Int, to count: Int) {
        guard count != former else { return }
        let number = numbers[address] ?? add(address)
        guard var server = servers.removeValue(forKey: number) else { return }
        server.count += count - former
        server.queues.remove(Int64(service))
        if count > 0 { server.queues.insert(Int64(service), key: -count) }
        largest.remove(number)
        guard server.count > 0 else {
            numbers[address] = nil
            return
        }
        largest.insert(number, key: -server.count)
        servers[number] = server
    }

    private mutating func add(_ address: IPAddress?) -> Int64 {
        lastNumber += 1
        numbers[address] = lastNumber
        servers[lastNumber] = Server()
        return lastNumber
    }
}
