import Core
import CurlClient
import Foundation
import TestSupport
import Testing
import Waku

@testable import NwakuRelay

struct NodeInspectionTests {
    private static func rlp(_ content: [UInt8], isList: Bool = false) -> [UInt8] {
        let base: UInt8 = isList ? 0xc0 : 0x80
        if !isList, content.count == 1, content[0] < 0x80 { return content }
        if content.count < 56 { return [base + UInt8(content.count)] + content }
        return content.count < 256
            ? [base + 56, UInt8(content.count)] + content : [base + 57, UInt8(content.count >> 8), UInt8(content.count & 0xff)] + content
    }

    private static func record(_ name: String, _ value: [UInt8]) -> String {
        let items: [[UInt8]] = [
            Array(repeating: 7, count: 64), [1], Array("id".utf8), Array("v4".utf8), Array(name.utf8), value, Array("secp256k1".utf8),
            Array(repeating: 2, count: 33),
        ]
        return "enr:" + Base64URL.encode(rlp(items.flatMap { rlp($0) }, isList: true))
    }

    @Test func shardsInRecords() throws {
        let list = try #require(RelayShards(record: Self.record("rs", [0, 16, 2, 0, 32, 0, 64])))
        #expect(list.clusterID == 16)
        #expect(list.shards == [32, 64])
        var bits = [UInt8](repeating: 0, count: 128)
        bits[4] = 1
        bits[127] = 0x80
        let vector = try #require(RelayShards(record: Self.record("rsv", [0, 1] + bits)))
        #expect(vector.clusterID == 1)
        #expect(vector.shards == [32, 1023])
    }

    @Test func recordsWithoutShards() {
        // The example of EIP-778.
        let example =
            "enr:-IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkTfj499SZuOh8R33Ls8RRcy5wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHYpMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8"
        for text in [
            "", "enr:", "enr:AA", example, "enr:" + String(repeating: "A", count: 2000), Self.record("rs", []),
            Self.record("rs", [0, 16, 3, 0]),
            Self.record("rsv", [0, 1]),
        ] {
            #expect(RelayShards(record: text) == nil, "\(text)")
        }
    }

    @Test func damagedRecordsNeverTrap() {
        let record = Self.record("rs", [0, 16, 2, 0, 32, 0, 64])
        let bytes = Array(record.utf8)
        for end in 0..<bytes.count { _ = RelayShards(record: String(decoding: bytes[..<end], as: UTF8.self)) }
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<2000 {
            var altered = bytes
            altered[Int.random(in: 4..<altered.count, using: &generator)] = "A_-9z".utf8.randomElement(using: &generator) ?? 0
            _ = RelayShards(record: String(decoding: altered, as: UTF8.self))
        }
    }

    private func inspect(_ reply: @escaping @Sendable (_ path: Substring) -> RawHTTPServer.Reply) async throws -> NodeInspection {
        let server = try RawHTTPServer { reply($0.head.split(separator: " ")[1].prefix { $0 != "?" }) }
        defer { server.stop() }
        return try await NwakuAPI(address: try NodeAddress(server.url), client: CurlClient()).inspect(shards: [32, 64])
    }

    @Test(arguments: ["/info", "/debug/v1/info"]) func aNode(infoPath: String) async throws {
        let found = try await inspect { path in
            switch path {
            case "/health": .status(200, body: #"{"nodeHealth":"READY","protocolsHealth":[{"Relay":"READY"}]}"#)
            case _ where path == infoPath:
                .status(200, body: #"{"listenAddresses":[],"enrUri":"\#(Self.record("rs", [0, 16, 1, 0, 32]))"}"#)
            case "/version": .status(200, body: "v0.36.0\n")
            case "/admin/v1/peers/relay/on/32": .status(200, body: #"{"shard":32,"peers":[{"multiaddr":"a"},{"multiaddr":"b"}]}"#)
            case "/admin/v1/peers/relay/on/64": .status(200, body: #"{"shard":64,"peers":[]}"#)
            case "/store/v3/messages": .status(200, body: #"{"statusCode":200,"messages":[]}"#)
            default: .status(404)
            }
        }
        #expect(found.health.isReady)
        #expect(found.version == "v0.36.0")
        #expect(found.shards?.clusterID == 16)
        #expect(found.peers == [32: 2, 64: 0])
        #expect(found.store == .present)
        #expect(found.clockAhead == nil)
    }

    @Test func aNodeWithoutInformation() async throws {
        let found = try await inspect { path in
            switch path {
            case "/health": .status(501)
            case "/store/v3/messages": .status(412, body: "no peers")
            default: .status(404)
            }
        }
        #expect(found.health.status == "UNKNOWN")
        #expect(found.shards == nil)
        #expect(found.peers == nil)
        #expect(found.store == .missing)
    }

    /// nwaku before 0.35.
    @Test func aStoreThatRefusesHashesInHexadecimalDigits() async throws {
        let server = try RawHTTPServer { request in
            let target = request.head.split(separator: " ")[1]
            if target == "/health" { return .status(200, body: #"{"nodeHealth":"READY","protocolsHealth":[]}"#) }
            guard target.hasPrefix("/store/v3/messages") else { return .status(404) }
            if target.contains("hashes=0x") { return .status(400, body: "invalid hash") }
            return .status(200, body: #"{"statusCode":200,"messages":[]}"#)
        }
        defer { server.stop() }
        let found = try await NwakuAPI(address: try NodeAddress(server.url), client: CurlClient()).inspect(shards: [])
        #expect(found.store == .withoutLookUps)
    }

    @Test func anUnreachableNodeIsAnError() async throws {
        let port = try ReservedPort()
        let api = NwakuAPI(address: try NodeAddress("http://127.0.0.1:\(port.number)"), client: CurlClient())
        await #expect(throws: NwakuAPIError.self) { try await api.inspect(shards: []) }
        withExtendedLifetime(port) {}
    }
}
