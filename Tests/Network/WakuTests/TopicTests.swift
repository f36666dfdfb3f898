import TestSupport
import Testing
import Waku

@Suite struct TopicTests {
    private static let recorded =
        StatusGoVectors.recorded.primitives.topics
        + StatusGoVectors.recorded.keys.flatMap { [$0.personalTopic, $0.partitionedTopic, $0.queryTopic, $0.contactCodeTopic] }

    @Test(arguments: recorded)
    func contentTopicsAreTheRecordedOnes(_ topic: StatusGoVectors.Topic) {
        let tag = TopicTag(of: topic.string)
        #expect(tag.rawValue == topic.topic.bytes.reduce(0) { $0 << 8 | UInt32($1) })
        #expect(ContentTopic(tag).rawValue == topic.contentTopic)
        #expect(ContentTopic(rawValue: topic.contentTopic).tag == tag)
    }

    @Test func theDefaultPubsubTopicIsTheRecordedOne() {
        #expect(PubsubTopic.statusDefault.rawValue == StatusGoVectors.recorded.primitives.pubsubTopics.default)
        #expect("\(PubsubTopic.statusDefault)" == "/waku/2/rs/16/32")
    }

    @Test(arguments: [(UInt32(0), "00000000"), (1, "00000001"), (0x0a0b_0c0d, "0a0b0c0d"), (.max, "ffffffff")])
    func tagsAreWrittenInEightDigits(value: UInt32, digits: String) {
        let topic = ContentTopic(TopicTag(rawValue: value))
        #expect(topic.rawValue == "/waku/1/0x\(digits)/rfc26")
        #expect("\(topic)" == topic.rawValue)
        #expect(topic.tag?.rawValue == value)
    }

    @Test(arguments: [
        "6426bb45", "6426BB45", "6426bB45", "6426bb4500", "6426bb45ffFFfffe", "6426bb45" + String(repeating: "0", count: 500),
    ])
    func digitsOfEitherCaseAndFurtherBytesGiveTheSameTag(_ digits: String) {
        #expect(ContentTopic(rawValue: "/waku/1/0x\(digits)/rfc26").tag == TopicTag(rawValue: 0x6426_bb45))
    }

    @Test(arguments: [
        "", "/", "/waku/1/0x/rfc26", "/waku/1/0x6426bb/rfc26", "/waku/1/0x6426bb4/rfc26", "/waku/1/0x6426bb450/rfc26",
        "/waku/1/6426bb45/rfc26", "/waku/1/0X6426bb45/rfc26", "/waku/2/0x6426bb45/rfc26", "/Waku/1/0x6426bb45/rfc26",
        "waku/1/0x6426bb45/rfc26", "//waku/1/0x6426bb45/rfc26", " /waku/1/0x6426bb45/rfc26", "/waku/1/0x6426bb45/rfc27",
        "/waku/1/0x6426bb45/rfc26 ", "/waku/1/0x6426bb45/rfc2", "/waku/1/0x6426bb45", "/waku/1/0x6426bb45/proto",
        "/waku/1/0x6426bb4g/rfc26", "/waku/1/0x6426bb4\0/rfc26", "/waku/1/0x6426bb45zz/rfc26", "/waku/1/0x6426bb45/rfc26/rfc26",
        "/waku/1/0x６426bb45/rfc26", "/waku/1/0x6426bb45é/rfc26", "/waku/1/0x6426bb4é/rfc26", "/wakü/1/0x6426bb45/rfc26",
        "/waku/1/0x+426bb45/rfc26", "/waku/1/0x/rfc26/rfc26", "🙂",
    ])
    func otherTopicsHaveNoTag(_ topic: String) {
        #expect(ContentTopic(rawValue: topic).tag == nil)
    }
}
