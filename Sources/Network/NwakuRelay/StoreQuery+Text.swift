import Core
import Waku

extension StoreQuery {
    /// The query string for `GET /store/v3/messages`: `name=value&…`, percent-encoded.
    var text: String {
        var items = ["includeData=\(includesMessages)", "ascending=\(isAscending)", "pageSize=\(pageSize)"]
        if let pubsubTopic { items.append("pubsubTopic=" + percentEncoded(pubsubTopic.rawValue)) }
        if !contentTopics.isEmpty {
            items.append("contentTopics=" + contentTopics.map { percentEncoded($0.rawValue) }.joined(separator: ","))
        }
        // Nodes refuse negative times.
        if let startTime { items.append("startTime=\(max(startTime.rawValue, 0))") }
        if let endTime { items.append("endTime=\(max(endTime.rawValue, 0))") }
        if !hashes.isEmpty { items.append("hashes=" + hashes.map { "0x" + $0.hex }.joined(separator: ",")) }
        if let cursor { items.append("cursor=" + percentEncoded(cursor)) }
        return items.joined(separator: "&")
    }
}
