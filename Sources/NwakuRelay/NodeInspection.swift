import CurlClient
import Foundation
import Waku

/// What a node tells of itself beside its health, for whoever sets one up. Nothing is taken from its caches.
package struct NodeInspection: Sendable {
    package enum Store: Hashable, Sendable {
        case present
        /// The node has none, and knows none.
        case missing
        /// Why it could not be asked.
        case unknown(String)
    }

    package let health: NodeHealth
    /// nil when the node does not tell.
    package let version: String?
    package let shards: ShardsInRecord?
    /// By shard; nil when the node's admin API is off.
    package let peers: [Int: Int]?
    package let store: Store
    /// How far its clock is ahead of this machine's, to a second or so; nil when it sends no date.
    package let clockAhead: Duration?
}

extension NwakuAPI {
    private struct InfoJSON: Decodable {
        let enrUri: String?
    }

    private struct PeersJSON: Decodable {
        struct Peer: Decodable {}
        let peers: [Peer]
    }

    /// Asks a node about itself.
    ///
    /// - Parameter shards: whose peers are counted.
    /// - Throws: ``NwakuAPIError`` when it can't be reached.
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
            health: health, version: await version(), shards: record.flatMap(ShardsInRecord.init), peers: peers, store: await store(),
            clockAhead: clockAhead)
    }

    private func version() async -> String? {
        guard let answer = try? await exchange(url: "/version", timeout: .seconds(5)), answer.status == 200 else { return nil }
        let text = NwakuAPIError.excerpt(answer.body)
        return text.isEmpty ? nil : text
    }

    private func store() async -> NodeInspection.Store {
        do throws(NwakuAPIError) {
            _ = try await query(StoreQuery(startTime: .now(), includesMessages: false, pageSize: 1), timeout: .seconds(5))
            return .present
        } catch {
            return [.status(404), .status(412), .status(501), .status(503)].contains(error.code) ? .missing : .unknown(error.message)
        }
    }

    private func read<Value: Decodable>(_ type: Value.Type, _ path: String) async throws -> Value {
        let answer = try await exchange(url: path, timeout: .seconds(5))
        try check(answer, path: path)
        return try JSONDecoder().decode(type, from: Data(answer.body))
    }
}
