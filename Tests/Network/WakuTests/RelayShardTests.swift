import Testing
import Waku

@Suite struct RelayShardTests {
    @Test func topicsOfShards() throws {
        let shard = try #require(PubsubTopic.statusDefault.relayShard)
        #expect(shard.cluster == 16 && shard.shard == 32)
        #expect(RelayShard("/waku/2/rs/16/32") == shard)
        #expect(RelayShard("/waku/2/rs/0/65535")?.shard == 65_535)
        #expect(RelayShard("/waku/2/rs/16/33") != shard && RelayShard("/waku/2/rs/1/32") != shard)
    }

    @Test(arguments: [
        "", "/waku/2/default-waku/proto", "/waku/2/rs/16", "/waku/2/rs/16/", "/waku/2/rs/16/x", "/waku/2/rs/16/99999", "/waku/2/rs/65536/1",
        "/waku/2/rs/16/+32", "/waku/2/rs/-1/32", "/waku/2/rs/16/000032", "/waku/2/rs/16/32/1", "waku/2/rs/1/2/3", "waku/2/rs/16/32/",
    ])
    func otherTopicsHaveNoShard(topic: String) {
        #expect(PubsubTopic(rawValue: topic).relayShard == nil)
    }

    @Test func listsInNodeRecords() {
        #expect(RelayShards(list: [0, 16, 2, 0, 32, 1, 0]) == RelayShards(clusterID: 16, shards: [32, 256]))
        #expect(RelayShards(list: [1, 0, 0]) == RelayShards(clusterID: 256, shards: []))
        for malformed in [[], [0, 16], [0, 16, 1], [0, 16, 1, 0], [0, 16, 1, 0, 32, 0]] as [[UInt8]] {
            #expect(RelayShards(list: malformed) == nil)
        }
    }

    @Test func bitVectorsInNodeRecords() {
        var bits = [UInt8](repeating: 0, count: 128)
        bits[4] = 1
        bits[127] = 0x80
        #expect(RelayShards(bitVector: [0, 1] + bits) == RelayShards(clusterID: 1, shards: [32, 1023]))
        #expect(RelayShards(bitVector: [0, 1] + Array(bits.dropLast())) == nil)
        #expect(RelayShards(bitVector: [0, 1] + bits + [0]) == nil)
    }
}
