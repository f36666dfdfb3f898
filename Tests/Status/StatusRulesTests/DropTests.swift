import Core
import NodeAPI
import NodeMetrics
import StatusRules
import Testing

struct DropTests {
    @Test(
        arguments: [
            (ProtobufError.tooMany, Counter.droppedTooMany), (.malformed, .droppedMalformedMessage), (.notUTF8, .droppedMalformedMessage),
            (.tooLong, .droppedMalformedMessage),
        ] as [(ProtobufError, Counter)])
    func longListsAreCountedApart(error: ProtobufError, counter: Counter) {
        #expect(Drop(error).counter == counter)
    }
}
