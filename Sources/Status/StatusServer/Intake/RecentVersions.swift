import Core
import StatusProtocol
import Synchronization

/// The latest stored versions of recent registrations, accepted or refused. A client that did not get its answer sends its registration again;
/// this cache lets the node refuse it without reading the store.
///
/// Versions never decrease, so an outdated entry does no harm. Bounded: at least the last `capacity` registrations, at most twice as many.
final class RecentVersions: Sendable {
    private let versions: Mutex<GenerationalCache<RegistrationKey, UInt64>>

    init(capacity: Int = 20_000) {
        versions = Mutex(GenerationalCache(capacity: capacity))
    }

    func version(of key: RegistrationKey) -> UInt64? {
        versions.withLock { $0.value(of: key) }
    }

    /// - Parameter version: a version that is durable, or older than a durable one.
    func note(_ version: UInt64, of key: RegistrationKey) {
        versions.withLock { $0.set(max(version, $0.value(of: key) ?? 0), of: key) }
    }
}
