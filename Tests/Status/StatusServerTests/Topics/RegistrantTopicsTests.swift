import Testing
import Waku

@testable import StatusServer

@Suite struct RegistrantTopicsTests {
    private func tags(_ numbers: some Sequence<UInt32>) -> Set<TopicTag> { Set(numbers.map { TopicTag(rawValue: $0) }) }

    @Test func topicsThatAReadDoesNotFindAreDropped() {
        var topics = RegistrantTopics()
        topics.insert(Array(tags(0..<100)))
        topics.beginRead()
        topics.endRead(tags(50..<60))
        #expect(topics.tags == tags(50..<60))
    }

    @Test func topicsAddedDuringAReadStay() {
        var topics = RegistrantTopics()
        topics.beginRead()
        topics.insert(Array(tags([1])))
        // Two at once: the second began after the first, and its registrant after the first's snapshot.
        topics.beginRead()
        topics.endRead([])
        #expect(topics.tags == tags([1]))
        topics.insert(Array(tags([2])))
        topics.endRead(tags([3]))
        #expect(topics.tags == tags(1...3))
        topics.beginRead()
        topics.endRead([])
        #expect(topics.tags.isEmpty)
    }

    @Test func aFailedReadChangesNothing() {
        var topics = RegistrantTopics()
        topics.insert(Array(tags(0..<10)))
        topics.beginRead()
        topics.endRead(nil)
        #expect(topics.tags.count == 10)
    }

    @Test func memoryIsBoundedWhileRegistrationsDisplaceEachOther() {
        var (topics, most, reads) = (RegistrantTopics(), 0, 0)
        for number in UInt32(0)..<1_000_000 {
            topics.insert([TopicTag(rawValue: number)])
            most = max(most, topics.tags.count)
            guard topics.isGrown else { continue }
            topics.beginRead()
            // The store has room for 20,000.
            topics.endRead(tags(UInt32(max(0, Int(number) - 19_999))...number))
            reads += 1
        }
        #expect(most <= 22_501 && reads <= 420, "\(most), \(reads) reads")
    }
}
