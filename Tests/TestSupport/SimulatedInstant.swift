package import Core

/// Instants of simulated time, counted from the epoch: a test writes `machine.fail(at: .seconds(3))`.
extension Instant {
    package static var zero: Instant { Instant(sinceEpoch: .zero) }

    package static func seconds(_ count: Int) -> Instant { zero + .seconds(count) }
    package static func seconds(_ count: Double) -> Instant { zero + .seconds(count) }
    package static func milliseconds(_ count: Int) -> Instant { zero + .milliseconds(count) }
}
