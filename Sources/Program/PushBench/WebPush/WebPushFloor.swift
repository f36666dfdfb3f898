/// The cost of the library calls that a Web Push notification requires.
struct WebPushFloor: Sendable {
    /// The name of the part that is libcurl's.
    static let post = "HTTPS POST, 64 in flight, without its TLS record"

    let settings: BenchSettings
    /// The folder of the database of ``PrimitiveMeter``.
    let folder: String
    /// Of push services, for bare posts.
    let urls: [String]
    /// PEM file.
    let authority: String
    /// A notification's share of its request.
    let share: Double

    func measure() async throws -> FloorMeasurement {
        let meter = PrimitiveMeter(folder: folder, slice: settings.slice)
        try meter.prepare()
        let primitives: Set<Primitive> = Floor.request.primitives.union([.p256ECDH, .p256KeyGeneration, .hkdf, .aes128Seal])
        let costs = try await meter.costs(of: primitives, cores: settings.cores)
        var sum = FloorMeasurement()
        func add(_ primitive: Primitive, times count: Double = 1, limit: Double? = nil, _ reason: String) {
            sum.add(primitive.rawValue, costs[primitive] ?? FloorCost(), times: count, limit: limit, reason)
        }
        // The steps of a request that are once for all its notifications: opening, and the answer.
        let perNotification: Set<Primitive> = [.select, .aesOpen, .aesSeal, .upsert100, .append100, .protobufDecode]
        for item in Floor.request.items where !perNotification.contains(item.primitive) {
            add(item.primitive, times: item.count * share, limit: item.limit * share, item.reason)
        }
        add(.select, limit: 0, "registration to be notified")
        add(.aesOpen, limit: 0, "registration, as it is stored")
        add(.protobufDecode, times: 2, limit: 1, "its part of the request; registration")
        add(.sha256, "id of the delivery, by which it is made once")
        add(.aesSeal, "notification, as it waits for the push service")
        add(.p256KeyGeneration, "ephemeral key")
        add(.p256ECDH, "secret shared with the device")
        add(.hkdf, times: 3, "key material, key and nonce")
        add(.aes128Seal, "message")
        add(.upsert100, times: 2, limit: 0, "row in the outbox before the post, row among the accepted after it")
        add(.append100, times: 0, limit: 2, "row before the post, row after it")
        add(.aesSeal, times: 2.5, "TLS record of about 1,500 bytes")
        let posts = try await PostMeter.measure(urls: urls, authority: authority, for: settings.slice)
        let records = 2.5 * (costs[.aesSeal]?.cpuMicroseconds ?? 0)
        sum.add(
            Self.post, FloorCost(cpuMicroseconds: max(0, posts.cpuMicroseconds - records)), "post by libcurl on connections that are kept")
        return sum
    }
}
