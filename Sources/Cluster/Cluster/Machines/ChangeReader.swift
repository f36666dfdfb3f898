package import Core

/// Decides from which time on to read other nodes' changes from the database's log, in addition to notifications, and when everything must be
/// reloaded instead.
///
/// A change is logged with the database's time of the change and becomes readable at its commit, so successive readings overlap. All times except
/// ``Core/Instant`` are the database's, in microseconds since 1970.
package struct ChangeReader: Sendable {
    private let configuration: ClusterConfiguration
    private var readUpTo: Int64?
    private var nextReload: Instant

    package init(_ configuration: ClusterConfiguration, at now: Instant) {
        self.configuration = configuration
        nextReload = now + configuration.fullChangeInterval
    }

    /// The time from which changes are to be read; nil: all changes.
    package var start: Int64? { readUpTo.map { $0 - configuration.changeOverlap.microseconds } }

    /// Records that the changes since ``start`` were read.
    ///
    /// - Parameters:
    ///   - isComplete: false if there were more changes than can be read.
    /// - Returns: whether everything must be reloaded.
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
