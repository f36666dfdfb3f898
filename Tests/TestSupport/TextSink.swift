import Synchronization

/// Collects what a command prints.
package final class TextSink: Sendable {
    private let written = Mutex("")

    package init() {}

    package var text: String { written.withLock(\.self) }

    @Sendable package func append(_ text: String) -> Bool {
        written.withLock { $0 += text }
        return true
    }
}
