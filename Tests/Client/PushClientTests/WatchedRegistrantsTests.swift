import Testing
import Waku
@testable import PushClient

@Suite struct WatchedRegistrantsTests {
    @Test func registrantsOfOneTopicAreFollowedEach() {
        let topic = ContentTopic(TopicTag(rawValue: 1))
        let (alice, bob) = (newKey(), newKey())
        var watched = WatchedRegistrants()
        for registrant in [alice, bob, alice] { watched.add(registrant, on: topic) }
        #expect(watched[topic] == [alice, bob])
        watched.remove(alice, from: topic)
        #expect(watched[topic] == [bob])
        watched.remove(bob, from: topic)
        #expect(watched[topic].isEmpty)
    }
}
