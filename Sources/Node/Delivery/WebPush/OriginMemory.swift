import Core

/// Remembers push services without deliveries. Services that answer have a part of their own, which silent names can't fill.
struct OriginMemory {
    struct Entry {
        let standing: OriginStanding
        let breaker: CircuitBreaker
        let lastNumber: UInt64
        let address: IPAddress?
    }

    private static let capacity = 10_000

    private var responsive = GenerationalCache<WebPushOrigin, Entry>(capacity: capacity)
    private var others = GenerationalCache<WebPushOrigin, Entry>(capacity: capacity)

    func entry(of origin: WebPushOrigin) -> Entry? { responsive.value(of: origin) ?? others.value(of: origin) }

    mutating func set(_ entry: Entry, of origin: WebPushOrigin, now: Timestamp) {
        remove(origin)
        if entry.standing.isResponsive(at: now) { responsive.set(entry, of: origin) } else { others.set(entry, of: origin) }
    }

    mutating func remove(_ origin: WebPushOrigin) {
        responsive.remove(origin)
        others.remove(origin)
    }
}
