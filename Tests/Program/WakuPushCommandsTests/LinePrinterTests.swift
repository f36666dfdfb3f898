import Dispatch
import TestSupport
import Testing
@testable import WakuPushCommands

@Suite struct LinePrinterTests {
    @Test func linesAreWrittenInTheirOrder() async throws {
        let output = TextSink()
        let invocation = Invocation(
            arguments: [], environment: [:], columns: 80, writeOutput: output.append, writeError: { _ in false })
        let printer = Invocation.$current.withValue(invocation) { LinePrinter() }
        try await printer.print("one")
        try await printer.print("two")
        #expect(output.text == "one\ntwo\n")
    }

    @Test(.timeLimit(.minutes(1))) func stopEndsTheWaitForAReaderThatTakesNothing() async throws {
        let (reader, isFull) = (DispatchSemaphore(value: 0), AsyncStream.makeStream(of: Void.self))
        let invocation = Invocation(
            arguments: [], environment: [:], columns: 80,
            writeOutput: { _ in
                isFull.continuation.yield()
                reader.wait()
                return true
            }, writeError: { _ in false })
        let printer = Invocation.$current.withValue(invocation) { LinePrinter() }
        defer { reader.signal() }
        let printing = Task { try await printer.print("line") }
        for await _ in isFull.stream { break }
        printer.stop()
        await #expect(throws: CancellationError.self) { try await printing.value }
        await #expect(throws: CancellationError.self) { try await printer.print("later") }
    }
}
