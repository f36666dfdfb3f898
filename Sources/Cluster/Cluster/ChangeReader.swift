package import Core

/// From when on to read the changes of other nodes, which the database has logged, beside its notifications; and when that is not enough.
///
/// A change is logged with the database's time at which it was made, and can be read when it is committed: so readings overlap. All times but
/// those of ``Primitives/Instant`` are the database's, in microseconds since 1970.
package struct ChangeReader: Sendable {
    private let configuration: ClusterConfiguration
    private var readUpTo: Int64?
    private var nextReload: Instant

    package init(_ configuration: ClusterConfiguration, at now: Instant) {
        self.configuration = configuration
        nextReload = now + configuration.fullChangeInterval
    }

    /// Read the changes that were made since then; nil: all that there are.
    package var start: Int64? { readUpTo.map { $0 - configuration.changeOverlap.microseconds } }

    /// Changes since ``start`` were read.
    ///
    /// - Parameters:
    ///   - time: when they were read.
    ///   - isComplete: false if there are more than can be read.
    /// - Returns: whether everything has to be read anew.
    package mutating func read(at time: Int64, isComplete: Bool, now: Instant) -> Bool {
        let last = readUpTo ?? time
        readUpTo = time
        let kept = configuration.changeRetention - configuration.changeOverlap
        // A clock that was set back may have logged changes before the last reading.
        guard !isComplete || now >= nextReload || time < last || time - last > kept.microseconds else { return false }
        nextReload = now + configuration.fullChangeInterval
        return true
    }
}

extension Duration {
    fileprivate var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}
