import Testing

@testable import WakuPushCommands

@Suite("Selection of notifications in the outbox")
struct OutboxSelectionTests {
    @Test("Up to ten ids are named")
    func namedIDs() {
        #expect(OutboxSelection.named([17]) == "17")
        #expect(OutboxSelection.named(Array(1...10)) == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")
        #expect(OutboxSelection.named(Array(1...13)) == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more")
    }
}
