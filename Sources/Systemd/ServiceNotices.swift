/// What a service manager is to be told of a service, when it changes.
///
///     starting ──(listening)──▶ READY=1 ──▶ running ──(obstacles change)──▶ STATUS=…
package struct ServiceNotices: Sendable {
    package static let alive = "WATCHDOG=1"
    package static let stopping = "STOPPING=1\nSTATUS=Stopping: finishing what is in hand"

    private static let statusLimit = 1_000

    private var isReady = false
    private var status = ""

    package init() {}

    /// The next datagram; nil when nothing is new. Not ready, but running, is a service that has obstacles: it lives, and heals itself.
    package mutating func next(isListening: Bool, obstacles: [String]) -> String? {
        let becomesReady = isListening && !isReady
        let newStatus = Self.status(isListening: isListening, obstacles)
        guard becomesReady || newStatus != status else { return nil }
        isReady = isReady || isListening
        status = newStatus
        return (becomesReady ? "READY=1\n" : "") + "STATUS=" + newStatus
    }

    /// Obstacles quote other programs: what they say must not become a line of its own.
    private static func status(isListening: Bool, _ obstacles: [String]) -> String {
        let text =
            !isListening ? "Starting" : obstacles.isEmpty ? "Ready" : "Running, not ready: " + obstacles.joined(separator: "; ")
        let scalars = text.unicodeScalars.prefix(statusLimit).map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: Unicode.Scalar(" ")
            default: scalar
            }
        }
        return String(String.UnicodeScalarView(scalars))
    }
}
