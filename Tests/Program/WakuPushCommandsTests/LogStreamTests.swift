import Foundation
import Testing

@testable import WakuPushCommands

@Suite("The log on standard error", .timeLimit(.minutes(1)))
struct LogStreamTests {
    /// `F_SETPIPE_SZ` of fcntl(2), which Glibc's module does not have.
    private static let setPipeSize: Int32 = 1031

    /// A pipe of four pages.
    private func makePipe() -> (reader: Int32, writer: Int32) {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        #expect(fcntl(ends[1], Self.setPipeSize, 16_384) == 16_384)
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        return (ends[0], ends[1])
    }

    private func readAll(_ reader: Int32) -> String {
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        while true {
            let count = read(reader, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer.prefix(count)
        }
    }

    private func dropped(_ count: Int) -> String { "dropped \(count)\n" }

    @Test("A reader that stops does not stop the writer; lines are dropped, and counted when it reads again")
    func stoppedReader() {
        let (reader, writer) = makePipe()
        defer { for end in [reader, writer] { close(end) } }
        let stream = LogStream(writer)
        let line = String(repeating: "x", count: 1023) + "\n"
        for _ in 0..<20 { stream.write(line, afterDropping: dropped) }
        let kept = readAll(reader)
        let count = kept.count / line.count
        #expect(kept == String(repeating: line, count: count) && (1..<20).contains(count))
        stream.write("next\n", afterDropping: dropped)
        #expect(readAll(reader) == "dropped \(20 - count)\nnext\n")
        stream.write("last\n", afterDropping: dropped)
        #expect(readAll(reader) == "last\n")
    }

    @Test("After a long line that was written in part, the next one begins a line")
    func tornLine() {
        let (reader, writer) = makePipe()
        defer { for end in [reader, writer] { close(end) } }
        let stream = LogStream(writer)
        stream.write(String(repeating: "y", count: 20_000) + "\n", afterDropping: dropped)
        #expect(readAll(reader) == String(repeating: "y", count: 16_384))
        stream.write("next\n", afterDropping: dropped)
        #expect(readAll(reader) == "\ndropped 1\nnext\n")
    }

    @Test("Lines for a file that takes no more are dropped and counted")
    func fullFile() throws {
        let file = open("/dev/full", O_WRONLY)
        defer { close(file) }
        let stream = LogStream(file)
        for _ in 0..<3 { stream.write("line\n", afterDropping: dropped) }
        let (reader, writer) = makePipe()
        defer { for end in [reader, writer] { close(end) } }
        #expect(dup2(writer, file) == file)
        stream.write("next\n", afterDropping: dropped)
        #expect(readAll(reader) == "dropped 3\nnext\n")
    }
}
