import Core

/// A time in a record.
struct StoredTime: Codable, Hashable, Sendable {
    private let nanoseconds: Int64
    init(_ time: Timestamp) { nanoseconds = time.rawValue }
    var time: Timestamp { Timestamp(rawValue: nanoseconds) }
}
