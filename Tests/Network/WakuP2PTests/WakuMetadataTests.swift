import Core
import Testing

@testable import WakuP2P

@Suite("Metadata")
struct WakuMetadataTests {
    @Test("Shards are encoded for old and new nodes, byte by byte")
    func encodes() {
        let metadata = WakuMetadata(clusterID: 16, shards: [32, 300])
        #expect(metadata.encoded() == [0x08, 16, 0x10, 32, 0x10, 0xAC, 0x02, 0x1A, 3, 32, 0xAC, 0x02])
        #expect(WakuMetadata(clusterID: nil, shards: []).encoded().isEmpty)
    }

    @Test(
        "Shards are read from either field, packed or not",
        arguments: [
            [0x08, 16, 0x10, 32, 0x10, 33], [0x08, 16, 0x12, 2, 32, 33], [0x08, 16, 0x1A, 2, 32, 33], [0x08, 16, 0x18, 32, 0x18, 33],
            [0x08, 16, 0x10, 1, 0x1A, 2, 32, 33], [0x7A, 1, 9, 0x1A, 2, 32, 33, 0x08, 16],
        ] as [[UInt8]])
    func reads(bytes: [UInt8]) throws {
        #expect(try WakuMetadata(parsing: bytes) == WakuMetadata(clusterID: 16, shards: [32, 33]))
    }

    @Test("A missing cluster differs from cluster 0")
    func absent() throws {
        #expect(try WakuMetadata(parsing: []).clusterID == nil)
        #expect(try WakuMetadata(parsing: [0x08, 0]).clusterID == 0)
    }

    @Test("Malformed metadata and too many shards are refused")
    func refusals() {
        for bytes in [[0x08], [0x0A, 0], [0x1A, 2, 0x80, 0x80], [0x1A, 5, 1]] as [[UInt8]] {
            #expect(throws: ProtobufError.malformed) { try WakuMetadata(parsing: bytes) }
        }
        let many = [UInt8](repeating: 1, count: 1025)
        #expect(throws: ProtobufError.tooMany) { try WakuMetadata(parsing: [0x1A, 0x81, 0x08] + many) }
    }
}
