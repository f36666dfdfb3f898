import Testing

@testable import PushNode

@Suite("When the relay's cursors are stored")
struct CursorWritesTests {
    @Test("Once a minute by an idle node")
    func idle() {
        var writes = CursorWrites()
        let due = (1...36).filter { _ in writes.isDue(hasHandled: false, hasFailed: false) }
        #expect(due == [12, 24, 36])
    }

    @Test("In each round with handled messages or a failing store; the minute begins anew")
    func active() {
        var writes = CursorWrites()
        let due = (1...20).filter { writes.isDue(hasHandled: (3...4).contains($0), hasFailed: $0 == 7) }
        #expect(due == [3, 4, 7, 19])
    }
}
