import CurlClient
import Foundation
import Core
package import Waku

/// The configuration and state of a node, for operators who set one up. The inspection takes no messages from its caches.
package struct NodeInspection: Sendable {
    package enum Store: Hashable, Sendable {
        case present
        /// It refuses look-ups by hash in hexadecimal digits, as nwaku before 0.35 does.
        case withoutLookUps
        /// The node has no store and knows no peer with one.
        case missing
        /// The query failed for this reason.
        case unknown(String)
    }

    package var health: NodeHealth
    /// nil when the node does not report it.
    package var version: String?
    package var shards: RelayShards?
    /// The number of relay peers by shard; nil when the node's admin API is off.
    package var peers: [Int: Int]?
    package var store: Store
    /// How far the node's clock is ahead of this machine's, to about a second; nil when its responses have no date.
    package var clockAhead: Duration?
}

extension NwakuAPI {
    private struct InfoJSON: Decodable {
        let enrUri: String?
    }

    private struct PeersJSON: Decodable {
        struct Peer: Decodable {}
        let peers: [Peer]
    }

    /// Inspects a node.
    ///
    /// - Parameter shards: The shards whose peers to count.
    /// - Throws: ``NwakuAPIError`` when the node cannot be reached.
    package func inspect(shards: [Int]) async throws(NwakuAPIError) -> NodeInspection {
        let start = Date()
        let answer = try await exchange(url: "/health", timeout: .seconds(5))
        let clockAhead = answer.header("Date").flatMap { HTTPDate.clockAhead($0, from: start, to: Date()) }
        let health = try await health()
        let info = try? await read(InfoJSON.self, "/debug/v1/info")
        let record: String? =
            if let enr = info?.enrUri { enr } else { try? await read(InfoJSON.self, "/info").enrUri }
        var peers: [Int: Int]? = [:]
        for shard in shards {
            guard let count = try? await read(PeersJSON.self, "/admin/v1/peers/relay/on/\(shard)").peers.count else {
                peers = nil
                break
            }
            peers?[shard] = count
        }
        return NodeInspection(
            health: health, version: await version(), shards: record.flatMap(RelayShards.init(record:)), peers: peers, store: await store(),
            clockAhead: clockAhead)
    }

    private func version() async -> String? {
        guard let answer = try? await exchange(url: "/version", timeout: .seconds(5)), answer.status == 200 else { return nil }
        let text = Excerpt.of(answer.body)
        return text.isEmpty ? nil : text
    }

    private func store() async -> NodeInspection.Store {
        do throws(NwakuAPIError) {
            _ = try await query(StoreQuery(startTime: .now(), includesMessages: false, pageSize: 1), timeout: .seconds(5))
        } catch {
            return [.status(404), .status(412), .status(501), .status(503)].contains(error.code) ? .missing : .unknown(error.message)
        }
        do throws(NwakuAPIError) {
            let hash = MessageHash(bytes: Array(repeating: 0, count: 32))
            _ = try await query(StoreQuery(hashes: [hash], includesMessages: false), timeout: .seconds(5))
        } catch {
            if error.code == .status(400) { return .withoutLookUps }
        }
        return .present
    }

    private func read<Value: Decodable>(_ type: Value.Type, _ path: String) async throws -> Value {
        let answer = try await exchange(url: path, timeout: .seconds(5))
        try check(answer, path: path)
        return try JSONDecoder.decode(type, fromForeign: answer.body)
    }
}
