import Foundation
import Synchronization

/// A stream for log lines that never waits for its reader: a pipe or socket whose reader stops must not stop the node. Lines that the stream does not
/// accept are dropped, and their number is written before the next line that it accepts.
///
/// A file on a disk that hangs, and a terminal that is paused, still block.
final class LogStream: Sendable {
    static let standardError = LogStream(StandardStream.error)

    /// A pipe that `poll` reports as writable accepts this much at once (`PIPE_BUF` of pipe(7)), and a socket accepts more.
    private static let pieceByteCount = 4096
    /// How long the first line waits for a reader that is only slow.
    private static let firstWait: Int32 = 100

    private struct State {
        var droppedCount = 0
        /// The last line was written in part only.
        var isTorn = false
    }

    private let descriptor: Int32
    /// Locked while a line is written: another thread's could fill the pipe after `poll` found it writable.
    private let state = Mutex(State())

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// - Parameters:
    ///   - line: ends with a line break.
    ///   - dropped: the line that reports how many lines were dropped before this one.
    func write(_ line: String, afterDropping dropped: (Int) -> String) {
        state.withLock { state in
            if state.droppedCount > 0 {
                guard write((state.isTorn ? "\n" : "") + dropped(state.droppedCount), &state) else {
                    state.droppedCount += 1
                    return
                }
                state.droppedCount = 0
            }
            if !write(line, &state) { state.droppedCount += 1 }
        }
    }

    private func write(_ text: String, _ state: inout State) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            guard isWritable(within: state.droppedCount == 0 ? Self.firstWait : 0) else { return false }
            let count = rest.prefix(Self.pieceByteCount).withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
            state.isTorn = !rest.isEmpty
        }
        return true
    }

    private func isWritable(within milliseconds: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while true {
            let count = poll(&polled, 1, milliseconds)
            if count < 0, errno == EINTR { continue }
            return count > 0
        }
    }
}
