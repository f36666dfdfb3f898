import Foundation
import Synchronization

/// A progress line on standard error; prints nothing if that is not a terminal.
package final class ProgressBar: Sendable {
    private static let width = 24
    private let isShown = isatty(STDERR_FILENO) == 1
    private let last = Mutex("")

    package init() {}

    /// - Parameter share: the completed part of it, 0 to 1; nil if that is not known.
    package func show(_ text: String, _ share: Double?) {
        guard let share else { return write(text) }
        let done = Int(min(max(share, 0), 1) * Double(Self.width))
        let bar = String(repeating: "#", count: done) + String(repeating: ".", count: Self.width - done)
        write("[\(bar)] \(text)")
    }

    /// Shows every thousandth row.
    func show(rows count: Int, _ share: Double? = nil) {
        if count.isMultiple(of: 1000) { show("\(count) registrations", share) }
    }

    package func clear() {
        write("")
    }

    private func write(_ line: String) {
        guard isShown else { return }
        last.withLock { last in
            guard line != last else { return }
            let blanks = String(repeating: " ", count: max(0, last.count - line.count))
            FileHandle.standardError.write(Data("\r\(line)\(blanks)\(line.isEmpty ? "\r" : "")".utf8))
            last = line
        }
    }
}
