/// What a check found: in readiness, in `admin status` and in `doctor`.
public struct Finding: Codable, Hashable, Sendable {
    public enum Verdict: String, Codable, Comparable, Sendable {
        case ok
        case warn
        case fail

        private var rank: Int {
            switch self {
            case .ok: 0
            case .warn: 1
            case .fail: 2
            }
        }

        public static func < (left: Verdict, right: Verdict) -> Bool { left.rank < right.rank }
    }

    /// What was looked at, a word or two.
    public let check: String
    public let verdict: Verdict
    /// What was found, without a full stop.
    public let text: String
    /// What to do about it; nil when it is all right, or the text says it.
    public let remedy: String?

    public init(_ check: String, _ verdict: Verdict, _ text: String, remedy: String? = nil) {
        self.check = check
        self.verdict = verdict
        self.text = text
        self.remedy = remedy
    }
}

extension Sequence<Finding> {
    /// Of all; ok of none.
    public var worst: Finding.Verdict { map(\.verdict).max() ?? .ok }
}
