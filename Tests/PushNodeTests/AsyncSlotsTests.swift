import Testing

@testable import PushNode

@Suite("Room for so much at once")
struct AsyncSlotsTests {
    @Test("What is kept free is not taken at once")
    func keeping() {
        let slots = AsyncSlots(10)
        #expect(slots.takeNow(6, leaving: 4))
        #expect(!slots.takeNow(1, leaving: 4))
        #expect(slots.takeNow(3, leaving: 1))
        #expect(slots.takeNow(1))
        #expect(!slots.takeNow(1))
        slots.give(10)
        #expect(slots.areAllFree)
    }

    @Test("Who waits is served in order, and nobody goes before")
    func order() async {
        let slots = AsyncSlots(4)
        await slots.take(4)
        async let large: Void = slots.take(3)
        while !slots.hasWaiting { await Task.yield() }
        slots.give(2)
        #expect(!slots.takeNow(1), "somebody waits")
        slots.give(2)
        await large
        #expect(slots.takeNow(1))
        #expect(!slots.takeNow(1))
    }

    @Test("More than there is waits for everything")
    func tooMuch() async {
        let slots = AsyncSlots(4)
        await slots.take(100)
        #expect(!slots.takeNow(1))
        slots.give(100)
        #expect(slots.areAllFree)
    }
}
