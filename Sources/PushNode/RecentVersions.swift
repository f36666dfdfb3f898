import StatusProtocol
import Synchronization

/// Which versions are stored, or newer ones, for those who registered lately or were refused. A client whose answer was lost sends its
/// registration again, and that can be refused for less.
///
/// Versions never go back, so that an old one is as good. Bounded: two generations; the older one goes when the younger is full.
final class RecentVersions: Sendable {
    private struct Generations {
        var young: [RegistrationKey: UInt64] = [:]
        var old: [RegistrationKey: UInt64] = [:]
    }

    private let generations = Mutex(Generations())
    private let capacity: Int

    init(capacity: Int = 20_000) {
        self.capacity = capacity
    }

    func version(of key: RegistrationKey) -> UInt64? {
        generations.withLock { $0.young[key] ?? $0.old[key] }
    }

    /// It is durable, or one that is newer.
    func note(_ version: UInt64, of key: RegistrationKey) {
        generations.withLock { generations in
            let version = max(version, generations.young[key] ?? generations.old[key] ?? 0)
            if generations.young.count >= capacity { generations = Generations(young: [:], old: generations.young) }
            generations.young[key] = version
        }
    }
}
