public import Primitives

/// Instants of simulated time, counted from the epoch: a test writes `machine.fail(at: .seconds(3))`.
extension Instant {
    public static var zero: Instant { Instant(sinceEpoch: .zero) }

    public static func seconds(_ count: Int) -> Instant { zero + .seconds(count) }
    public static func seconds(_ count: Double) -> Instant { zero + .seconds(count) }
    public static func milliseconds(_ count: Int) -> Instant { zero + .milliseconds(count) }
}
