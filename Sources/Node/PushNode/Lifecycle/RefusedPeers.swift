import Core
import NodeAPI
import RateLimits
import Synchronization
import WakuCrypto

/// The networks whose connections were refused, for operators: by a hash, and in bounded memory. Thread-safe.
final class RefusedPeers: Sendable {
    /// Names networks within this process only.
    private let hasher = PayerHasher(key: .random())
    private let log = Mutex(RefusalLog())

    /// - Parameter block: the peer's /24 or /64; nil if it has no address.
    func refused(_ block: AddressRange?) {
        let charge = Charge(hasher.payer(.peer, block), .stranger)
        log.withLock { $0.worked(for: charge) }
    }

    /// Called once a minute.
    func endMinute(at now: Timestamp) {
        log.withLock { $0.endMinute(at: now) }
    }

    /// The ten networks with most refusals of the day, largest first.
    func greatest(at now: Timestamp) -> [LimitReport.Payer] {
        LimitReport.payers(of: log.withLock(\.self), hasher: hasher, at: now)
    }
}
