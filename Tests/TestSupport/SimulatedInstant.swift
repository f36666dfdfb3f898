/// Instants of simulated time, counted from an arbitrary origin: a test writes `machine.fail(at: .seconds(3))`.
extension ContinuousClock.Instant {
    public static var zero: Self { ContinuousClock().systemEpoch }

    public static func seconds(_ count: Int) -> Self { zero + .seconds(count) }
    public static func seconds(_ count: Double) -> Self { zero + .seconds(count) }
    public static func milliseconds(_ count: Int) -> Self { zero + .milliseconds(count) }

    /// The simulated time since the origin.
    public var sinceZero: Duration { self - .zero }
}
