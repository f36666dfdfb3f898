/// Decides which notifications to send to the service manager: one for each change.
///
///     starting ──(listening)──▶ READY=1 ──▶ running ──(obstacles change)──▶ STATUS=…
///
/// A service that listens but has obstacles is running, not failed: it recovers by itself and must not be restarted.
struct ServiceNotices: Sendable {
    static let alive = "WATCHDOG=1"
    /// In seconds: the manager ends a start that lasts longer than its time limit if no further extension comes within this time.
    static let startExtension = 90
    static let opening = "EXTEND_TIMEOUT_USEC=\(startExtension)000000\nSTATUS=Starting: opening the database"
    static let stopping = "STOPPING=1\nSTATUS=Stopping: finishing work in progress"

    private static let statusLimit = 1_000

    private var isReady = false
    private var status = ""

    /// The next notification; nil when nothing changed.
    ///
    /// - Parameters:
    ///   - isListening: Whether the service accepts connections. Once it did, it stays ready.
    ///   - obstacles: Why the service does not work fully, a phrase each.
    mutating func next(isListening: Bool, obstacles: [String]) -> String? {
        let becomesReady = isListening && !isReady
        let newStatus = Self.status(isListening: isListening, obstacles)
        guard becomesReady || newStatus != status else { return nil }
        isReady = isReady || isListening
        status = newStatus
        return (becomesReady ? "READY=1\n" : "") + "STATUS=" + newStatus
    }

    /// Control characters are replaced: obstacles quote other programs, and their text must not start a new line.
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
