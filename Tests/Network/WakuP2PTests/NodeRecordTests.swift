import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@testable import WakuP2P

@Suite("Node records")
struct NodeRecordTests {
    /// The example of EIP-778.
    static let example =
        "enr:-IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkTfj499SZuOh8R33Ls8RRcy5wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHYpMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8"

    /// A signed record of these pairs, in order.
    static func record(_ pairs: [(String, [UInt8])], sequence: UInt8 = 1, by key: PrivateKey) -> [UInt8] {
        var pairs = pairs + [("id", Array("v4".utf8)), ("secp256k1", key.publicKey.compressed)]
        pairs.sort { $0.0 < $1.0 }
        let content = RLP.string([sequence]) + pairs.flatMap { RLP.string(Array($0.0.utf8)) + RLP.string($0.1) }
        let signature = Signature(of: Keccak256.hash(RLP.list(content)), by: key).bytes.prefix(64)
        return RLP.list(RLP.string(signature) + content)
    }

    @Test("The example of EIP-778")
    func example() throws {
        let record = try NodeRecord(parsing: Self.example)
        #expect(record.sequence == 1)
        #expect(hexString(record.publicKey.compressed) == "03ca634cae0d49acb401d8a4c6b6fe8c55b70d115bf400769cc1400f3258cd3138")
        #expect(record.ip4 == [127, 0, 0, 1])
        #expect(record.tcp == nil && record.multiaddrs.isEmpty && record.shards == nil)
    }

    @Test("Waku's fields")
    func waku() throws {
        let key = PrivateKey.generate()
        let address: [UInt8] = [4, 127, 0, 0, 1, 6, 0x1F, 0x90]
        let pairs: [(String, [UInt8])] = [
            ("ip", [10, 0, 0, 1]), ("tcp", [0xEA, 0x60]), ("ip6", [UInt8](repeating: 1, count: 16)), ("tcp6", [9]),
            ("multiaddrs", [0, 8] + address + [0, 8] + address + [0, 9, 1]), ("rs", [0, 16, 2, 0, 32, 1, 0]), ("waku2", [1]),
        ]
        let record = try NodeRecord(parsing: Self.record(pairs, by: key))
        #expect(record.publicKey == key.publicKey)
        #expect(record.ip4 == [10, 0, 0, 1] && record.tcp == 60000 && record.ip6?.count == 16 && record.tcp6 == 9)
        #expect(record.multiaddrs == [address, address])
        #expect(record.shards == .init(clusterID: 16, shards: [32, 256]))
        var bits = [UInt8](repeating: 0, count: 128)
        bits[4] = 1
        bits[127] = 0x80
        let dense = try NodeRecord(parsing: Self.record([("rsv", [0, 16] + bits)], by: key))
        #expect(dense.shards == .init(clusterID: 16, shards: [32, 1023]))
        let odd = try NodeRecord(parsing: Self.record([("rs", [0, 16, 3, 0]), ("ip", [1]), ("tcp", [1, 2, 3])], by: key))
        #expect(odd.shards == nil && odd.ip4 == nil && odd.tcp == nil)
    }

    @Test("Invalid signatures, schemes and sizes are refused")
    func refusals() throws {
        let key = PrivateKey.generate()
        var bytes = Self.record([("ip", [10, 0, 0, 1])], by: key)
        bytes[10] ^= 1
        #expect(throws: ENRError.badSignature) { try NodeRecord(parsing: bytes) }
        bytes = Self.record([("ip", [10, 0, 0, 1])], by: key)
        #expect(throws: ENRError.malformed) { try NodeRecord(parsing: bytes + [0]) }
        #expect(throws: ENRError.malformed) { try NodeRecord(parsing: Array(bytes.dropLast())) }
        #expect(throws: ENRError.tooLong) { try NodeRecord(parsing: Self.record([("x", [UInt8](repeating: 1, count: 200))], by: key)) }
        let scheme = Array("v4".utf8)
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: scheme) })
        bytes[start + 1] = 0x35
        #expect(throws: ENRError.unknownScheme) { try NodeRecord(parsing: bytes) }
        for text in ["", "enr:", "enr:****", "enr:gA", "rne:" + Self.example.dropFirst(4)] {
            #expect(throws: ENRError.self) { try NodeRecord(parsing: text) }
        }
        #expect(throws: ENRError.tooLong) { try NodeRecord(parsing: "enr:" + String(repeating: "A", count: 500)) }
    }

    @Test("Damaged records are refused, and never trap", arguments: 1...5 as ClosedRange<UInt64>)
    func damaged(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let bytes = try #require(Base64.decodeURL(Self.example.dropFirst(4).utf8))
        for _ in 0..<500 {
            let damaged = generator.damaged(bytes)
            if damaged != bytes { #expect(throws: ENRError.self) { try NodeRecord(parsing: damaged) } }
        }
        for _ in 0..<2000 { _ = try? NodeRecord(parsing: generator.bytes(Int.random(in: 0..<40, using: &generator))) }
    }
}
